// Making values: astype, and random numbers from Philox4x32-10.
#include "common.cuh"
#include "shape.h"

namespace gradcuda {

// ---------------------------------------------------------------- kernels

namespace {

// out, x (n,). One thread an element, grid-stride. Float to integer truncates; to bool is `!= 0`.
template <typename To, typename From> __global__ void astype_kernel(To *out, const From *x, int64_t n) {
    for (int64_t i = first_index(); i < n; i += index_stride()) {
        if constexpr (std::is_same_v<To, bool>)
            out[i] = x[i] != From(0);
        else
            out[i] = static_cast<To>(x[i]);
    }
}

// Salmon, Moraes, Dror, Shaw: Parallel Random Numbers, SC 2011. The block at `position` under `key`, four words.
__device__ uint4 philox(uint64_t position, uint64_t key) {
    uint4 c = make_uint4(static_cast<uint32_t>(position), static_cast<uint32_t>(position >> 32), 0, 0);
    uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
    for (int round = 0; round < 10; ++round) {
        const uint32_t left_low = c.x * 0xD2511F53u, left_high = __umulhi(c.x, 0xD2511F53u);
        const uint32_t right_low = c.z * 0xCD9E8D57u, right_high = __umulhi(c.z, 0xCD9E8D57u);
        c = make_uint4(right_high ^ c.y ^ k0, right_low, left_high ^ c.w ^ k1, left_low);
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return c;
}

// out (n,). One thread a block of four numbers, grid-stride.
__global__ void random_uniform_kernel(float *out, const int64_t *counter, uint64_t key, int64_t n) {
    const uint64_t start = static_cast<uint64_t>(*counter);
    for (int64_t i = first_index(); 4 * i < n; i += index_stride()) {
        const uint4 words = philox(start + static_cast<uint64_t>(i), key);
        const uint32_t word[4] = {words.x, words.y, words.z, words.w};
        for (int j = 0; j < 4 && 4 * i + j < n; ++j)
            out[4 * i + j] = static_cast<float>(word[j] >> 8) * 0x1p-24f;
    }
}

// One thread in all, after every thread of random_uniform_kernel has read the counter.
__global__ void advance_kernel(int64_t *counter, int64_t blocks) { *counter += blocks; }

// ---------------------------------------------------------------- launchers

template <typename F> void with_type(DType dtype, F &&f) {
    switch (dtype) {
    case DType::float32:
        return f(float());
    case DType::float64:
        return f(double());
    case DType::int32:
        return f(int32_t());
    case DType::int64:
        return f(int64_t());
    case DType::uint8:
        return f(uint8_t());
    case DType::boolean:
        return f(bool());
    }
}

} // namespace

void astype_launch(DType to, void *out, DType from, const void *x, int64_t n, cudaStream_t stream) {
    with_type(to, [&](auto target) {
        with_type(from, [&](auto source) {
            astype_kernel<<<grid_for(n), BLOCK, 0, stream>>>(static_cast<decltype(target) *>(out),
                                                             static_cast<const decltype(source) *>(x), n);
        });
    });
    check_launch("astype_kernel");
}

void random_uniform_launch(float *out, int64_t *counter, uint64_t key, int64_t n, cudaStream_t stream) {
    const int64_t blocks = ceil_div<int64_t>(n, 4);
    random_uniform_kernel<<<grid_for(blocks), BLOCK, 0, stream>>>(out, counter, key, n);
    check_launch("random_uniform_kernel");
    advance_kernel<<<1, 1, 0, stream>>>(counter, blocks);
    check_launch("advance_kernel");
}

} // namespace gradcuda
