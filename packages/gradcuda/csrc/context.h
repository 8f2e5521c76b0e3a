// Context: one device, one stream, cuBLAS, and the word in which kernels report a bad index.
//
// One Context belongs to one backend object ("cuda", "cuda:1"); every array refers to the one it came from. Creating it
// is the first thing that touches the GPU: importing the module does not.
// Next: array.h, then memory.h, blas.h, graph.h.
#pragma once

#include "errors.h"

#include <atomic>
#include <memory>
#include <string>
#include <vector>

namespace gradcuda {

class Pool;
class Blas;

// Written by kernels, read by the host at synchronising calls. The first report wins.
struct BadIndex {
    int set;
    int operation; // an IndexedOperation
    long long value, length;
};

enum IndexedOperation : int { TAKE = 0, CROSS_ENTROPY = 1, TAKE_BATCH = 2 };

// Passed to kernels by value; they call report_bad_index (common.cuh).
struct ErrorWord {
    int *taken;     // device memory: 1 once a kernel has reported
    BadIndex *host; // mapped host memory
};

struct Options {
    int device = 0;
    bool tf32 = false;                     // cuBLAS and the tiled convolution may round operands to TF32
    std::string conv = "auto";             // convolution algorithm: auto, direct, unroll, implicit_gemm, cudnn
    std::vector<std::string> cublas_paths; // where to look for libcublas, in order
    std::vector<std::string> cudnn_paths;  // the same for libcudnn
};

// How many forks lie between the process that loaded this module and this one. CUDA does not survive a fork.
unsigned forks();

// Makes a device current for the C++ scope, and the former one again after it.
class DeviceGuard {
  public:
    explicit DeviceGuard(int device);
    ~DeviceGuard();
    DeviceGuard(const DeviceGuard &) = delete;

  private:
    int former_ = -1; // -1: nothing to restore
};

class Context : public std::enable_shared_from_this<Context> {
  public:
    static std::shared_ptr<Context> create(const Options &options);
    ~Context();
    Context(const Context &) = delete;

    const Options &options() const { return options_; }
    int device() const { return options_.device; }
    cudaStream_t stream() const { return stream_; }
    int multiprocessors() const { return multiprocessors_; } // how many blocks make the device busy
    int capability() const { return capability_; }           // 90 for 9.0
    const std::string &device_name() const { return device_name_; }
    Blas &blas(); // loads cuBLAS at the first call; throws CudaError if it is not there
    ErrorWord error_word() const { return error_word_; }

    // Opens an operation (through Scope, array.h): throws if the device is lost, this is a forked child, or another
    // thread is recording a graph.
    void enter(const char *operation);

    // As enter, for work that cannot be recorded (a copy to or from the host): throws while a graph is recorded.
    void enter_host(const char *operation);

    // Wait for all work; then raise a bad index that a kernel reported. Hold no Python lock here.
    void synchronize(const char *operation);

    // Memory (memory.h): the pool for new arrays is the graph's own while one is recorded.
    const std::shared_ptr<Pool> &pool() const { return recording_ ? recording_ : pool_; }
    const std::shared_ptr<Pool> &common_pool() const { return pool_; }
    bool recording() const { return recording_ != nullptr; }
    void begin_recording(); // a new pool; graph.h calls this
    void end_recording();
    bool usable() const; // false in a forked child: nothing of CUDA may be called, not even to free

  private:
    explicit Context(const Options &options);
    void raise_bad_index();

    Options options_;
    cudaStream_t stream_ = nullptr;
    int multiprocessors_ = 0, capability_ = 0;
    std::string device_name_;
    std::unique_ptr<Blas> blas_;
    std::shared_ptr<Pool> pool_, recording_;
    unsigned long recording_thread_ = 0;
    unsigned forks_ = 0;
    ErrorWord error_word_ = {};
};

} // namespace gradcuda
