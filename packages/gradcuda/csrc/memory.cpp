// The allocator of memory.h: size classes, a pool, and the buffer that returns its block.
#include "memory.h"

#include "context.h"
#include "errors.h"

#include <algorithm>
#include <cstdio>

namespace gradcuda {

namespace {

constexpr size_t SMALLEST = 512;

// Round up to a class: eight steps a power of two, so at most an eighth is wasted.
size_t size_class(size_t bytes) {
    size_t power = SMALLEST;
    while (power * 2 < bytes)
        power *= 2;
    const size_t step = std::max(power / 8, SMALLEST);
    return (bytes + step - 1) / step * step;
}

std::string gib(size_t bytes) {
    char text[64];
    std::snprintf(text, sizeof text, "%zu bytes (%.2f GiB)", bytes, static_cast<double>(bytes) / (1 << 30));
    return text;
}

// A block of another pool that a recording freed: back to its pool when the recording's own pool dies.
struct Lease {
    Lease(std::shared_ptr<Pool> pool, Block block, bool abroad) : pool(std::move(pool)), block(block), abroad(abroad) {}
    ~Lease() { pool->give(block, abroad); }
    Lease(const Lease &) = delete;
    std::shared_ptr<Pool> pool;
    Block block;
    bool abroad;
};

} // namespace

Pool::Pool(int device, bool plain, bool is_private)
    : device_(device), plain_(plain), private_(is_private), forks_(forks()) {}

Pool::~Pool() {
    kept_.clear();
    if (forks_ != forks())
        return; // a forked child owns nothing on the device
    DeviceGuard guard(device_);
    for (auto &entry : free_)
        for (void *data : entry.second)
            drop({data, entry.first});
    for (const Block &block : abroad_)
        drop(block);
}

// Exceptions and messages have no place here: at the end of the process the driver may be gone already.
void Pool::drop(Block block) noexcept {
    cudaFree(block.data);
    now_.reserved -= block.bytes;
}

Block Pool::take(size_t bytes) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!abroad_.empty() && !private_) {
        CUDA_CHECK(cudaDeviceSynchronize()); // whatever another library did with them is done
        for (const Block &block : abroad_)
            free_[block.bytes].push_back(block.data);
        abroad_.clear();
    }
    const Block block = cached_or_new(plain_ ? bytes : size_class(bytes));
    now_.in_use += block.bytes;
    now_.peak = std::max(now_.peak, now_.in_use);
    now_.allocations += 1;
    return block;
}

Block Pool::cached_or_new(size_t bytes) {
    const auto found = free_.find(bytes);
    if (!plain_ && found != free_.end() && !found->second.empty()) {
        void *data = found->second.back();
        found->second.pop_back();
        return {data, bytes};
    }
    void *data = nullptr;
    cudaError_t status = cudaMalloc(&data, bytes);
    if (status == cudaErrorMemoryAllocation && !private_) { // while recording, nothing can be freed
        cudaGetLastError();
        trim_locked();
        status = cudaMalloc(&data, bytes);
    }
    if (status == cudaErrorMemoryAllocation) {
        cudaGetLastError();
        size_t free = 0, total = 0;
        cudaMemGetInfo(&free, &total);
        throw OutOfMemory("out of memory on device " + std::to_string(device_) + ": requested " + gib(bytes) +
                          ", free " + gib(free) + ", total " + gib(total) + "; in use by this backend " +
                          gib(now_.in_use));
    }
    check(status, "cudaMalloc");
    now_.reserved += bytes;
    now_.from_driver += 1;
    return {data, bytes};
}

void Pool::give(Block block, bool abroad) {
    if (forks_ != forks())
        return;
    std::lock_guard<std::mutex> lock(mutex_);
    now_.in_use -= block.bytes;
    if (plain_ && !private_) {
        DeviceGuard guard(device_);
        drop(block); // waits for the device
    } else if (abroad) {
        abroad_.push_back(block);
    } else {
        free_[block.bytes].push_back(block.data);
    }
}

void Pool::keep(std::shared_ptr<void> what) {
    std::lock_guard<std::mutex> lock(mutex_);
    kept_.push_back(std::move(what));
}

size_t Pool::trim() {
    std::lock_guard<std::mutex> lock(mutex_);
    return private_ ? 0 : trim_locked();
}

size_t Pool::trim_locked() {
    DeviceGuard guard(device_);
    const size_t before = now_.reserved;
    for (auto &entry : free_)
        for (void *data : entry.second)
            drop({data, entry.first}); // waits for the device
    free_.clear();
    return before - now_.reserved;
}

MemoryStatistics Pool::statistics() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return now_;
}

void Pool::reset_peak() {
    std::lock_guard<std::mutex> lock(mutex_);
    now_.peak = now_.in_use;
}

Buffer::Buffer(std::shared_ptr<Context> context, std::shared_ptr<Pool> pool, Block block)
    : context_(std::move(context)), pool_(std::move(pool)), block_(block) {}

Buffer::Buffer(std::shared_ptr<Context> context, void *data, std::shared_ptr<void> owner)
    : context_(std::move(context)), block_{data, 0}, owner_(std::move(owner)) {}

Buffer::~Buffer() {
    if (!context_->usable())
        return;
    const bool recorded = context_->recording() && pool_ != context_->pool();
    if (owner_ != nullptr) {
        if (recorded)
            context_->pool()->keep(std::move(owner_));
        else
            cudaStreamSynchronize(context_->stream()); // its library may reuse it at once, on another stream
    } else if (block_.data != nullptr) {
        if (recorded)
            context_->pool()->keep(std::make_shared<Lease>(std::move(pool_), block_, exported_));
        else
            pool_->give(block_, exported_);
    }
}

std::shared_ptr<Buffer> allocate(Context &context, size_t bytes) {
    const std::shared_ptr<Pool> &pool = context.pool();
    const Block block = bytes == 0 ? Block{} : pool->take(bytes);
    return std::make_shared<Buffer>(context.shared_from_this(), pool, block);
}

} // namespace gradcuda
