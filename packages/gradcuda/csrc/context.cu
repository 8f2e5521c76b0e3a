// Context: created with every check that availability needs for certain, and torn down without a word.
#include "context.h"

#include "blas.h"
#include "memory.h"

#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <pthread.h>

namespace gradcuda {

namespace {

std::atomic<unsigned> fork_count{0};
std::atomic<bool> used{false};    // a context was made in this process or in one that it was forked from
std::atomic<unsigned> used_at{0}; // fork_count then
std::atomic<int> device_count{0};
const int registered = pthread_atfork(nullptr, nullptr, [] { fork_count.fetch_add(1); });

[[noreturn]] void throw_forked(const char *operation) {
    throw CudaError(std::string(operation) +
                    ": this process was forked from one that used the GPU, and CUDA does not survive a fork: start it "
                    "with multiprocessing.get_context('spawn'), or use the GPU in the child only");
}

[[noreturn]] void unavailable(const std::string &reason) { throw Refused("BackendUnavailable", reason); }

__global__ void probe_kernel() {}

bool plain_allocator() {
    const char *value = std::getenv("GRADCUDA_ALLOCATOR");
    return value != nullptr && std::strcmp(value, "plain") == 0;
}

int attribute(cudaDeviceAttr which, int device) {
    int value = 0;
    CUDA_CHECK(cudaDeviceGetAttribute(&value, which, device));
    return value;
}

unsigned long this_thread() { return static_cast<unsigned long>(pthread_self()); }

} // namespace

unsigned forks() {
    (void)registered;
    return fork_count.load(std::memory_order_relaxed);
}

DeviceGuard::DeviceGuard(int device) {
    if (device_count.load(std::memory_order_relaxed) < 2)
        return;
    int current = -1;
    if (cudaGetDevice(&current) == cudaSuccess && current != device && cudaSetDevice(device) == cudaSuccess)
        former_ = current;
}

DeviceGuard::~DeviceGuard() {
    if (former_ >= 0)
        cudaSetDevice(former_);
}

std::shared_ptr<Context> Context::create(const Options &options) {
    throw_if_lost();
    if (used.load() && used_at.load() != forks())
        throw_forked("creating the CUDA backend");
    return std::shared_ptr<Context>(new Context(options));
}

Context::Context(const Options &options) : options_(options), forks_(forks()) {
    int count = 0;
    const cudaError_t status = cudaGetDeviceCount(&count);
    cudaGetLastError();
    if (status == cudaErrorInitializationError)
        throw_forked("creating the CUDA backend");
    if (status != cudaSuccess)
        unavailable(std::string("CUDA finds no device: ") + cudaGetErrorString(status));
    const int device = options.device;
    if (device < 0 || device >= count)
        unavailable("there is no device " + std::to_string(device) + ": CUDA sees " + std::to_string(count));
    device_count.store(count);
    used_at.store(forks());
    used.store(true);
    DeviceGuard guard(device);
    capability_ = 10 * attribute(cudaDevAttrComputeCapabilityMajor, device) +
                  attribute(cudaDevAttrComputeCapabilityMinor, device);
    multiprocessors_ = attribute(cudaDevAttrMultiProcessorCount, device);
    cudaDeviceProp properties;
    CUDA_CHECK(cudaGetDeviceProperties(&properties, device));
    device_name_ = properties.name;
    cudaFuncAttributes attributes;
    if (cudaFuncGetAttributes(&attributes, probe_kernel) != cudaSuccess) {
        const std::string why = cudaGetErrorString(cudaGetLastError());
        unavailable("no code for compute capability " + std::to_string(capability_ / 10) + "." +
                    std::to_string(capability_ % 10) + " (" + device_name_ + "): " + why + "; built for " +
                    GRADCUDA_ARCHITECTURES);
    }
    CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    pool_ = std::make_shared<Pool>(device, plain_allocator(), false);
    CUDA_CHECK(cudaMalloc(&error_word_.taken, sizeof(int)));
    CUDA_CHECK(cudaMemsetAsync(error_word_.taken, 0, sizeof(int), stream_));
    CUDA_CHECK(cudaHostAlloc(&error_word_.host, sizeof(BadIndex), cudaHostAllocMapped | cudaHostAllocPortable));
    std::memset(error_word_.host, 0, sizeof(BadIndex));
}

Context::~Context() {
    if (!usable())
        return;
    DeviceGuard guard(device());
    blas_.reset();
    cudaFree(error_word_.taken);
    cudaFreeHost(error_word_.host);
    cudaStreamDestroy(stream_);
}

bool Context::usable() const { return forks_ == forks(); }

Blas &Context::blas() {
    if (blas_ == nullptr) {
        if (recording())
            throw Refused("GraphError",
                          "matmul: the first product cannot be inside a recorded step: run the step once");
        blas_ = std::make_unique<Blas>(*this);
    }
    return *blas_;
}

void Context::enter(const char *operation) {
    throw_if_lost();
    if (!usable())
        throw_forked(operation);
    if (recording() && recording_thread_ != this_thread())
        throw Refused("GraphError", std::string(operation) +
                                        ": another thread is recording a step on this backend: wait for it, or give "
                                        "each thread a backend of its own");
}

void Context::enter_host(const char *operation) {
    enter(operation);
    if (recording())
        throw Refused("GraphError", std::string(operation) +
                                        ": a step that is being recorded as a CUDA graph cannot exchange values with "
                                        "the host (float(), item(), numpy(), tensors from host data): do that outside "
                                        "of the step, or run without a graph");
}

void Context::synchronize(const char *operation) {
    enter_host(operation);
    check(cudaStreamSynchronize(stream_), operation);
    raise_bad_index();
}

void Context::raise_bad_index() {
    volatile BadIndex *host = error_word_.host;
    if (host->set == 0)
        return;
    const int operation = host->operation;
    const std::string value = std::to_string(host->value), length = std::to_string(host->length);
    const std::string last = std::to_string(host->length - 1);
    host->set = 0;
    CUDA_CHECK(cudaMemsetAsync(error_word_.taken, 0, sizeof(int), stream_));
    const char *names[] = {"take", "cross_entropy", "take_batch"};
    const bool label = operation == CROSS_ENTROPY;
    throw Refused("ArgumentError", std::string(names[operation]) + (label ? ": label " : ": index ") + value +
                                       " is not one of 0.." + last + " (" +
                                       (label ? length + " classes" : "an axis of " + length) + ")");
}

void Context::begin_recording() {
    recording_thread_ = this_thread();
    recording_ = std::make_shared<Pool>(device(), plain_allocator(), true);
}

void Context::end_recording() { recording_.reset(); }

} // namespace gradcuda
