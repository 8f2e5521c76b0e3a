// Sum and max over any axes. Long reductions go in stages: chunks of terms to partial results, which are reduced again.
//
// A float32 sum is a tree: a thread adds at most 32 terms one by one, then warps and blocks combine by shuffles in a
// fixed order, so a million terms keep 1e-6 and equal runs give equal bits.
#include "common.cuh"
#include "reduce.h"

#include <algorithm>

namespace gradcuda {

// ---------------------------------------------------------------- kernels

namespace {

constexpr int64_t BLOCK_CHUNK = 16 * BLOCK; // terms of one block
constexpr int64_t WARP_CHUNK = 16 * WARP;   // so few are left to one warp
constexpr int TILE = 32, DEPTH = 8;         // columns: outputs beside each other, threads down the terms
constexpr int64_t COLUMN_CHUNK = 32 * DEPTH;

// max in the language of kernels: below every value.
template <typename R> __device__ R nothing(Maximum) {
    if constexpr (std::is_same_v<R, float> || std::is_same_v<R, double>)
        return -static_cast<R>(INFINITY);
    else
        return std::is_same_v<R, uint8_t> ? R(0) : R(R(1) << (sizeof(R) * 8 - 1));
}
template <typename R> __device__ R nothing(Sum) { return R(0); }

// out (outputs, chunks): chunk c of output o. One group of threads (a warp or a block) a task o * chunks + c.
template <int GROUP, typename T, typename R, typename Op>
__global__ void reduce_rows_kernel(R *out, const T *x, Layout kept, Layout terms, int64_t tasks, int64_t chunks,
                                   int64_t chunk, int64_t count, Op op) {
    constexpr int GROUPS = BLOCK / GROUP;
    const int lane = threadIdx.x % GROUP;
    for (int64_t task = static_cast<int64_t>(blockIdx.x) * GROUPS + threadIdx.x / GROUP; task < tasks;
         task += static_cast<int64_t>(gridDim.x) * GROUPS) {
        const int64_t o = task / chunks, first = (task - o * chunks) * chunk, last = min(first + chunk, count);
        int64_t base[1], at[1];
        find_offsets(kept, o, base);
        R value = nothing<R>(op);
        for (int64_t r = first + lane; r < last; r += GROUP) {
            find_offsets(terms, r, at);
            value = op(value, static_cast<R>(x[base[0] + at[0]]));
        }
        if constexpr (GROUP == WARP)
            value = warp_reduce(value, op);
        else
            value = block_reduce(value, op, nothing<R>(op));
        if (lane == 0)
            out[task] = value;
    }
}

// The same for outputs that are neighbours in memory. One block of TILE x DEPTH threads: TILE outputs, one chunk.
template <typename T, typename R, typename Op>
__global__ void reduce_columns_kernel(R *out, const T *x, Layout kept, Layout terms, int64_t outputs, int64_t chunks,
                                      int64_t count, Op op) {
    __shared__ R partial[DEPTH][TILE + 1];
    const int64_t tiles = ceil_div<int64_t>(outputs, TILE);
    for (int64_t task = blockIdx.x; task < tiles * chunks; task += gridDim.x) {
        const int64_t c = task / tiles, o = (task - c * tiles) * TILE + threadIdx.x;
        const int64_t first = c * COLUMN_CHUNK, last = min(first + COLUMN_CHUNK, count);
        R value = nothing<R>(op);
        if (o < outputs) {
            int64_t base[1], at[1];
            find_offsets(kept, o, base);
            for (int64_t r = first + threadIdx.y; r < last; r += DEPTH) {
                find_offsets(terms, r, at);
                value = op(value, static_cast<R>(x[base[0] + at[0]]));
            }
        }
        partial[threadIdx.y][threadIdx.x] = value;
        __syncthreads();
        for (int half = DEPTH / 2; half > 0; half /= 2) {
            if (threadIdx.y < half)
                partial[threadIdx.y][threadIdx.x] =
                    op(partial[threadIdx.y][threadIdx.x], partial[threadIdx.y + half][threadIdx.x]);
            __syncthreads();
        }
        if (threadIdx.y == 0 && o < outputs)
            out[o * chunks + c] = partial[0][threadIdx.x];
        __syncthreads(); // partial is written again by the next task
    }
}

// ---------------------------------------------------------------- launchers

int64_t chunks_of(const Reduction &r) {
    return std::max<int64_t>(1, ceil_div(r.count, r.columns ? COLUMN_CHUNK : BLOCK_CHUNK));
}

// The reduction of `chunks` partial results to each output.
Reduction next_stage(int64_t outputs, int64_t chunks) {
    Reduction next;
    next.kept = make_layout({outputs}, {contiguous_strides({outputs})});
    next.kept.stride[0][0] = chunks;
    next.terms = make_layout({chunks}, {contiguous_strides({chunks})});
    next.outputs = outputs;
    next.count = chunks;
    return next;
}

template <typename T, typename R, typename Op>
void launch_stage(R *out, const T *x, const Reduction &r, int64_t chunks, Op op, cudaStream_t stream) {
    const int64_t tasks = r.outputs * chunks;
    if (r.columns) {
        const int64_t blocks = std::min(ceil_div<int64_t>(r.outputs, TILE) * chunks, MAX_GRID);
        reduce_columns_kernel<T, R><<<static_cast<unsigned>(blocks), dim3(TILE, DEPTH), 0, stream>>>(
            out, x, r.kept, r.terms, r.outputs, chunks, r.count, op);
        check_launch("reduce_columns_kernel");
    } else if (r.count <= WARP_CHUNK) {
        const int64_t blocks = std::min(ceil_div<int64_t>(tasks, BLOCK / WARP), MAX_GRID);
        reduce_rows_kernel<WARP, T, R><<<static_cast<unsigned>(blocks), BLOCK, 0, stream>>>(
            out, x, r.kept, r.terms, tasks, chunks, BLOCK_CHUNK, r.count, op);
        check_launch("reduce_rows_kernel");
    } else {
        reduce_rows_kernel<BLOCK, T, R><<<static_cast<unsigned>(std::min(tasks, MAX_GRID)), BLOCK, 0, stream>>>(
            out, x, r.kept, r.terms, tasks, chunks, BLOCK_CHUNK, r.count, op);
        check_launch("reduce_rows_kernel");
    }
}

template <typename T, typename R, typename Op>
void reduce(void *out, const void *x, const Reduction &first, void *workspace, Op op, cudaStream_t stream) {
    R *target = static_cast<R *>(out), *scratch = static_cast<R *>(workspace);
    int64_t chunks = chunks_of(first);
    launch_stage(chunks == 1 ? target : scratch, static_cast<const T *>(x), first, chunks, op, stream);
    while (chunks > 1) {
        const Reduction next = next_stage(first.outputs, chunks);
        const R *from = scratch;
        scratch += first.outputs * chunks;
        chunks = chunks_of(next);
        launch_stage(chunks == 1 ? target : scratch, from, next, chunks, op, stream);
    }
}

} // namespace

Reduction make_reduction(const Shape &shape, const bool (&reduced)[MAX_DIMS]) {
    const Strides all = contiguous_strides(shape);
    Shape kept, terms;
    Strides kept_strides, term_strides;
    Reduction r;
    for (int i = 0; i < shape.ndim; ++i) {
        if (reduced[i]) {
            term_strides[terms.ndim] = all[i];
            terms.push(shape[i]);
        } else {
            kept_strides[kept.ndim] = all[i];
            kept.push(shape[i]);
        }
        if (shape[i] != 1)
            r.columns = !reduced[i] && shape[i] >= TILE / 2;
    }
    r.outputs = kept.count();
    r.count = terms.count();
    r.columns = r.columns && r.count > 1;
    r.kept = make_layout(kept, {kept_strides});
    r.terms = make_layout(terms, {term_strides});
    return r;
}

DType reduced_dtype(ReduceOp op, DType dtype) { return op == ReduceOp::max || is_float(dtype) ? dtype : DType::int64; }

int64_t reduce_workspace(const Reduction &reduction) {
    int64_t elements = 0;
    for (int64_t chunks = chunks_of(reduction); chunks > 1; chunks = ceil_div(chunks, BLOCK_CHUNK))
        elements += reduction.outputs * chunks;
    return elements;
}

void reduce_launch(ReduceOp op, DType dtype, void *out, const void *x, const Reduction &r, void *workspace,
                   cudaStream_t stream) {
    const bool sum = op == ReduceOp::sum;
    switch (dtype) {
    case DType::float32:
        return sum ? reduce<float, float>(out, x, r, workspace, Sum(), stream)
                   : reduce<float, float>(out, x, r, workspace, Maximum(), stream);
    case DType::float64:
        return sum ? reduce<double, double>(out, x, r, workspace, Sum(), stream)
                   : reduce<double, double>(out, x, r, workspace, Maximum(), stream);
    case DType::int32:
        return sum ? reduce<int32_t, int64_t>(out, x, r, workspace, Sum(), stream)
                   : reduce<int32_t, int32_t>(out, x, r, workspace, Maximum(), stream);
    case DType::int64:
        return sum ? reduce<int64_t, int64_t>(out, x, r, workspace, Sum(), stream)
                   : reduce<int64_t, int64_t>(out, x, r, workspace, Maximum(), stream);
    case DType::uint8:
    case DType::boolean: // 0 or 1 in a byte
        return sum ? reduce<uint8_t, int64_t>(out, x, r, workspace, Sum(), stream)
                   : reduce<uint8_t, uint8_t>(out, x, r, workspace, Maximum(), stream);
    }
}

} // namespace gradcuda
