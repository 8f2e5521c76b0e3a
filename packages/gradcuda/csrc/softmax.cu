// softmax.cu: softmax and log_softmax along any axis, each with its backward.
//
// The largest entry is subtracted first, so nothing overflows; minus infinity is a legal entry of probability 0, and a
// row of nothing else is NaN. Sums are kept in float64: a row may be long. Three kernels each way by the axis' layout:
// a warp for a short contiguous row, a block for a long one, a thread for a row that runs across memory.
// Next: cross_entropy.cu.
#include "common.cuh"
#include "softmax.h"

namespace gradcuda {
namespace {

constexpr int64_t SHORT = 1024; // entries of a row that one warp walks

// ------------------------------------------------------------------------------------------------ kernels

// A row's entries as its owner walks them: `first`, `first + step`, ... each `stride` numbers apart in memory; `sum`
// and `largest` join what the row's threads found. Alone: one thread owns the row.
struct Alone {
    template <class T> __device__ T sum(T value) const { return value; }
    template <class T> __device__ T largest(T value) const { return value; }
};
struct Warp {
    template <class T> __device__ T sum(T value) const { return warp_sum(value); }
    template <class T> __device__ T largest(T value) const { return warp_max(value); }
};
struct Block {
    template <class T> __device__ T sum(T value) const { return block_sum(value); }
    template <class T> __device__ T largest(T value) const { return block_max(value); }
};

template <class T, class Owners>
__device__ void forward_row(T *y, const T *x, int64_t length, int64_t stride, int first, int step, bool logarithm,
                            const Owners &owners) {
    const Maximum maximum;
    T largest = -INFINITY;
    for (int64_t i = first; i < length; i += step)
        largest = maximum(largest, x[i * stride]);
    largest = owners.largest(largest);
    double total = 0.0;
    for (int64_t i = first; i < length; i += step)
        total += exp(x[i * stride] - largest);
    total = owners.sum(total);
    if (logarithm) {
        const T logarithm_of_total = static_cast<T>(log(total));
        for (int64_t i = first; i < length; i += step)
            y[i * stride] = x[i * stride] - largest - logarithm_of_total;
    } else {
        const T scale = static_cast<T>(1.0 / total);
        for (int64_t i = first; i < length; i += step)
            y[i * stride] = exp(x[i * stride] - largest) * scale;
    }
}

// softmax: dx = y * (grad - sum(grad * y)); log_softmax: dx = grad - exp(y) * sum(grad)
template <class T, class Owners>
__device__ void backward_row(T *dx, const T *grad, const T *y, int64_t length, int64_t stride, int first, int step,
                             bool logarithm, const Owners &owners) {
    double total = 0.0;
    for (int64_t i = first; i < length; i += step)
        total +=
            logarithm ? static_cast<double>(grad[i * stride]) : static_cast<double>(grad[i * stride]) * y[i * stride];
    const T sum = static_cast<T>(owners.sum(total));
    for (int64_t i = first; i < length; i += step) {
        const T g = grad[i * stride], v = y[i * stride];
        dx[i * stride] = logarithm ? g - exp(v) * sum : v * (g - sum);
    }
}

// Operands of either direction, so that one kernel for each layout serves both: `out` is y or dx, `in` is x or grad.
template <class T> struct Rows {
    T *out;
    const T *in, *y; // y: of the backward alone
    AxisShape s;
    bool logarithm, backward;

    template <class Owners>
    __device__ void walk(int64_t offset, int64_t stride, int first, int step, const Owners &owners) const {
        if (backward)
            backward_row(out + offset, in + offset, y + offset, s.length, stride, first, step, logarithm, owners);
        else
            forward_row(out + offset, in + offset, s.length, stride, first, step, logarithm, owners);
    }
};

// Contiguous rows (outer, length), one warp a row.
template <class T> __global__ void softmax_warp_kernel(const Rows<T> rows) {
    const int warps = blockDim.x / WARP, lane = threadIdx.x % WARP;
    for (int64_t row = int64_t{blockIdx.x} * warps + threadIdx.x / WARP; row < rows.s.outer;
         row += int64_t{gridDim.x} * warps)
        rows.walk(row * rows.s.length, 1, lane, WARP, Warp{});
}

// Contiguous rows (outer, length), one block a row.
template <class T> __global__ void softmax_block_kernel(const Rows<T> rows) {
    for (int64_t row = blockIdx.x; row < rows.s.outer; row += gridDim.x)
        rows.walk(row * rows.s.length, 1, threadIdx.x, blockDim.x, Block{});
}

// (outer, length, inner) with inner > 1, one thread a row: neighbouring threads read neighbouring numbers.
template <class T> __global__ void softmax_strided_kernel(const Rows<T> rows) {
    const int64_t count = rows.s.outer * rows.s.inner;
    for (int64_t row = first_index(); row < count; row += index_stride()) {
        const int64_t outer = row / rows.s.inner;
        rows.walk(outer * rows.s.length * rows.s.inner + (row - outer * rows.s.inner), rows.s.inner, 0, 1, Alone{});
    }
}

// ------------------------------------------------------------------------------------------------ launchers

template <class T> void launch(const Rows<T> &rows, cudaStream_t stream) {
    const AxisShape &s = rows.s;
    if (s.outer * s.length * s.inner == 0)
        return;
    if (s.inner > 1)
        softmax_strided_kernel<T><<<grid_for(s.outer * s.inner, 64), 64, 0, stream>>>(rows);
    else if (s.length <= SHORT)
        softmax_warp_kernel<T><<<grid_for(s.outer, 4), 4 * WARP, 0, stream>>>(rows);
    else
        softmax_block_kernel<T><<<grid_for(s.outer, 1), BLOCK, 0, stream>>>(rows);
    check_launch("softmax_kernel");
}

} // namespace

template <class T> void softmax_forward(T *y, const T *x, const AxisShape &s, bool logarithm, cudaStream_t stream) {
    launch(Rows<T>{y, x, nullptr, s, logarithm, false}, stream);
}

template <class T>
void softmax_backward(T *dx, const T *grad, const T *y, const AxisShape &s, bool logarithm, cudaStream_t stream) {
    launch(Rows<T>{dx, grad, y, s, logarithm, true}, stream);
}

#define INSTANTIATE(T)                                                                                                 \
    template void softmax_forward(T *, const T *, const AxisShape &, bool, cudaStream_t);                              \
    template void softmax_backward(T *, const T *, const T *, const AxisShape &, bool, cudaStream_t);
INSTANTIATE(float)
INSTANTIATE(double)
#undef INSTANTIATE

} // namespace gradcuda
