// What kernels and launchers share: grids, grid-stride loops, warp and block reductions, the error word.
//
// House rules: one thread block is 1-D unless the kernel says otherwise; x of the grid carries whatever can be large
// (y and z end at 65,535); every launcher ends in check_launch("name_kernel"), takes pointers, sizes and a stream,
// and neither allocates nor synchronises, so that all of them can be recorded in a graph. No float atomics.
#pragma once

#include "context.h"

#include <cstdint>
#include <cuda_runtime.h>

namespace gradcuda {

constexpr int BLOCK = 256; // threads of an ordinary block
constexpr int WARP = 32;
constexpr int64_t MAX_GRID = 65535; // of a grid-stride launch: enough to fill any device

template <typename T> __host__ __device__ constexpr T ceil_div(T a, T b) { return (a + b - 1) / b; }

// Blocks of a grid-stride launch over n items, `per_thread` of them a thread and round.
inline unsigned grid_for(int64_t n, int block = BLOCK, int per_thread = 1) {
    int64_t blocks = ceil_div<int64_t>(n, static_cast<int64_t>(block) * per_thread);
    return static_cast<unsigned>(blocks < MAX_GRID ? blocks : MAX_GRID);
}

inline bool is_aligned(const void *pointer, size_t bytes) { return reinterpret_cast<uintptr_t>(pointer) % bytes == 0; }

#ifdef __CUDACC__

// for (int64_t i = first_index(); i < n; i += index_stride())
__device__ inline int64_t first_index() { return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ inline int64_t index_stride() { return static_cast<int64_t>(gridDim.x) * blockDim.x; }

struct Sum {
    template <typename T> __device__ T operator()(T a, T b) const { return a + b; }
};

// NaN if either is NaN.
struct Maximum {
    template <typename T> __device__ T operator()(T a, T b) const { return (a > b || a != a) ? a : b; }
};

// Every lane gets the warp's result; all 32 lanes must call. The order is fixed, so the bits are too.
template <typename T, typename Op> __device__ T warp_reduce(T value, Op op) {
    for (int offset = WARP / 2; offset > 0; offset /= 2)
        value = op(value, static_cast<T>(__shfl_xor_sync(0xffffffffu, value, offset)));
    return value;
}
template <typename T> __device__ T warp_sum(T value) { return warp_reduce(value, Sum{}); }
template <typename T> __device__ T warp_max(T value) { return warp_reduce(value, Maximum{}); }

// Every thread gets the block's result; all threads must call; blockDim.x a multiple of 32, at most 1024. `nothing` is
// the operation's neutral value. May be called again at once.
template <typename T, typename Op> __device__ T block_reduce(T value, Op op, T nothing) {
    __shared__ T partial[WARP];
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
    value = warp_reduce(value, op);
    if (lane == 0)
        partial[warp] = value;
    __syncthreads();
    value = warp_reduce(lane < warps ? partial[lane] : nothing, op);
    __syncthreads(); // partial may be written again
    return value;
}
template <typename T> __device__ T block_sum(T value) { return block_reduce(value, Sum{}, T(0)); }
template <typename T> __device__ T block_max(T value) {
    return block_reduce(value, Maximum{}, T(-__builtin_huge_val()));
}

// A kernel that met a label or an index outside 0..length-1: remember the first one; the host raises it at the next
// synchronising call. The kernel goes on with a NaN and never reads out of bounds.
__device__ inline void report_bad_index(ErrorWord word, IndexedOperation operation, long long value, long long length) {
    if (atomicCAS(word.taken, 0, 1) == 0) {
        volatile BadIndex *host = word.host;
        host->operation = operation;
        host->value = value;
        host->length = length;
        __threadfence_system();
        host->set = 1;
    }
}

#endif

} // namespace gradcuda
