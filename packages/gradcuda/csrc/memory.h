// Where the bytes come from: a caching, stream-ordered allocator.
//
// A Context does all its work on one stream, so a freed block can be handed out again at once: whoever gets it comes
// later on that stream. Sizes are rounded up to classes (eight steps a power of two) and a block serves its class
// only. While a graph is recorded, blocks come from a pool of its own, which lives as long as the graph or any
// array made in it; what the recording frees of the common pool is kept for the graph too, which may read it.
// GRADCUDA_ALLOCATOR=plain: one cudaMalloc of the exact size an array, so that compute-sanitizer sees overruns.
// Out of memory: the cache is given back first; then OutOfMemory names requested, free and total bytes.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace gradcuda {

class Context;

struct MemoryStatistics {
    size_t in_use = 0;      // bytes handed out now, rounded up to their class
    size_t peak = 0;        // highest in_use since the start or the last reset
    size_t reserved = 0;    // bytes held from the driver: in use and cached
    size_t allocations = 0; // blocks handed out so far
    size_t from_driver = 0; // of these, how many needed the driver
};

struct Block {
    void *data = nullptr;
    size_t bytes = 0; // of the class
};

class Pool {
  public:
    Pool(int device, bool plain, bool is_private); // is_private: of one recorded graph
    ~Pool();                                       // gives everything back to the driver
    Pool(const Pool &) = delete;

    Block take(size_t bytes); // throws OutOfMemory
    void give(Block block, bool abroad);
    void keep(std::shared_ptr<void> what); // until the pool dies
    size_t trim();                         // give cached blocks back to the driver; returns bytes
    MemoryStatistics statistics() const;
    void reset_peak();

  private:
    Block cached_or_new(size_t bytes);
    void drop(Block block) noexcept;
    size_t trim_locked();

    mutable std::mutex mutex_;
    int device_;
    bool plain_, private_;
    unsigned forks_; // forks() at the start: a forked child owns nothing on the device
    std::map<size_t, std::vector<void *>> free_;
    std::vector<Block> abroad_; // freed by another library, whose stream may still use them
    std::vector<std::shared_ptr<void>> kept_;
    MemoryStatistics now_;
};

// One allocation, or memory that belongs to another library. Shared by the arrays that view it.
class Buffer {
  public:
    Buffer(std::shared_ptr<Context> context, std::shared_ptr<Pool> pool, Block block);
    Buffer(std::shared_ptr<Context> context, void *data, std::shared_ptr<void> owner);
    ~Buffer();
    Buffer(const Buffer &) = delete;

    Context &context() const { return *context_; }
    void *data() const { return block_.data; }
    void set_exported() { exported_ = true; } // another library holds it too

  private:
    std::shared_ptr<Context> context_;
    std::shared_ptr<Pool> pool_; // null for foreign memory
    Block block_;
    std::shared_ptr<void> owner_; // of foreign memory
    bool exported_ = false;
};

std::shared_ptr<Buffer> allocate(Context &context, size_t bytes); // data is null for 0 bytes

} // namespace gradcuda
