// pool2d.cu: max and average pooling, forward and backward.
//
// A maximum is the window's last NaN, else its first largest entry in row-major order; padding never wins. The
// backward kernels gather: each input element looks at the windows that hold it, so overlapping windows add up in a
// fixed order and nothing is atomic. Disjoint 2x2 windows have kernels of their own, which move two numbers at a time.
#include "common.cuh"
#include "fast_divide.cuh"
#include "pool2d.h"

namespace gradcuda {
namespace {

// ------------------------------------------------------------------------------------------------ kernels

template <class T> struct alignas(2 * sizeof(T)) Two {
    T a, b;
};

// The windows along one axis that can hold position x: first..last. With dilation some of them step over it.
struct Windows {
    int first, last;
};
__device__ inline Windows windows_over(int x, int pad, int reach, int stride, int count) {
    const int lowest = x + pad - reach + 1;
    return {lowest <= 0 ? 0 : (lowest + stride - 1) / stride, min((x + pad) / stride, count - 1)};
}

// Entries that window o averages over along one axis; the overhang of ceil_mode never counts.
__device__ inline int window_size(int o, int stride, int pad, int kernel, int size, bool count_include_pad) {
    const int start = o * stride - pad;
    return count_include_pad ? min(start + kernel, size + pad) - start : min(start + kernel, size) - max(start, 0);
}

template <class T> __device__ inline void take_larger(T value, int index, T &best, int &best_index) {
    if (value > best || value != value || best_index < 0) {
        best = value;
        best_index = index;
    }
}

// y, indices (planes, OH, OW) from x (planes, H, W). One thread an output element.
template <class T>
__global__ void max_pool2d_forward_kernel(T *__restrict__ y, int32_t *__restrict__ indices, const T *__restrict__ x,
                                          Pool2dShape s, FastDivide out_plane, FastDivide width, int64_t size) {
    for (int64_t q = first_index(); q < size; q += index_stride()) {
        int j;
        const T *plane = x + split_wide(q, out_plane, j) * (s.h * s.w);
        const int i = width.split(j), h0 = i * s.stride_h - s.pad_h, w0 = j * s.stride_w - s.pad_w;
        T best = 0;
        int index = -1;
        for (int k = 0; k < s.kh; k++) {
            const int h = h0 + k * s.dilation_h;
            if (h < 0 || h >= s.h)
                continue;
            for (int l = 0; l < s.kw; l++) {
                const int w = w0 + l * s.dilation_w;
                if (w >= 0 && w < s.w)
                    take_larger(plane[h * s.w + w], h * s.w + w, best, index);
            }
        }
        y[q] = best;
        indices[q] = index;
    }
}

// The same for disjoint 2x2 windows. One thread a window: two loads of two neighbours.
template <class T>
__global__ void max_pool2d_halves_forward_kernel(T *__restrict__ y, int32_t *__restrict__ indices,
                                                 const T *__restrict__ x, Pool2dShape s, FastDivide out_plane,
                                                 FastDivide width, int64_t size) {
    for (int64_t q = first_index(); q < size; q += index_stride()) {
        int j;
        const int64_t plane = split_wide(q, out_plane, j);
        int index = width.split(j) * 2 * s.w; // of the upper left entry
        index += 2 * j;
        const T *corner = x + plane * (s.h * s.w) + index;
        const Two<T> upper = *reinterpret_cast<const Two<T> *>(corner);
        const Two<T> lower = *reinterpret_cast<const Two<T> *>(corner + s.w);
        T best = upper.a;
        int best_index = index;
        take_larger(upper.b, index + 1, best, best_index);
        take_larger(lower.a, index + s.w, best, best_index);
        take_larger(lower.b, index + s.w + 1, best, best_index);
        y[q] = best;
        indices[q] = best_index;
    }
}

// dx (planes, H, W). One thread an input element: it adds the gradients of the windows that chose it.
template <class T>
__global__ void max_pool2d_backward_kernel(T *__restrict__ dx, const T *__restrict__ grad,
                                           const int32_t *__restrict__ indices, Pool2dShape s, FastDivide plane,
                                           FastDivide width, int64_t size) {
    for (int64_t q = first_index(); q < size; q += index_stride()) {
        int w;
        const int64_t out = split_wide(q, plane, w) * (s.oh * s.ow);
        const int self = w, h = width.split(w);
        const Windows rows = windows_over(h, s.pad_h, (s.kh - 1) * s.dilation_h + 1, s.stride_h, s.oh);
        const Windows columns = windows_over(w, s.pad_w, (s.kw - 1) * s.dilation_w + 1, s.stride_w, s.ow);
        T sum = 0;
        for (int i = rows.first; i <= rows.last; i++)
            for (int j = columns.first; j <= columns.last; j++)
                if (indices[out + i * s.ow + j] == self)
                    sum += grad[out + i * s.ow + j];
        dx[q] = sum;
    }
}

// The same for disjoint 2x2 windows. One thread a window: it writes the window's four gradients.
template <class T>
__global__ void max_pool2d_halves_backward_kernel(T *__restrict__ dx, const T *__restrict__ grad,
                                                  const int32_t *__restrict__ indices, Pool2dShape s,
                                                  FastDivide out_plane, FastDivide width, int64_t size) {
    for (int64_t q = first_index(); q < size; q += index_stride()) {
        int j;
        const int64_t plane = split_wide(q, out_plane, j);
        int index = width.split(j) * 2 * s.w;
        index += 2 * j;
        T *corner = dx + plane * (s.h * s.w) + index;
        const T g = grad[q];
        const int chosen = indices[q] - index;
        *reinterpret_cast<Two<T> *>(corner) = {chosen == 0 ? g : T(0), chosen == 1 ? g : T(0)};
        *reinterpret_cast<Two<T> *>(corner + s.w) = {chosen == s.w ? g : T(0), chosen == s.w + 1 ? g : T(0)};
    }
}

// y (planes, OH, OW). One thread an output element; a window is added row by row, so that large ones stay exact.
template <class T>
__global__ void avg_pool2d_forward_kernel(T *__restrict__ y, const T *__restrict__ x, Pool2dShape s, bool pad_counts,
                                          FastDivide out_plane, FastDivide width, int64_t size) {
    for (int64_t q = first_index(); q < size; q += index_stride()) {
        int j;
        const T *plane = x + split_wide(q, out_plane, j) * (s.h * s.w);
        const int i = width.split(j), h0 = i * s.stride_h - s.pad_h, w0 = j * s.stride_w - s.pad_w;
        T sum = 0;
        for (int h = max(h0, 0); h < min(h0 + s.kh, s.h); h++) {
            T row = 0;
            for (int w = max(w0, 0); w < min(w0 + s.kw, s.w); w++)
                row += plane[h * s.w + w];
            sum += row;
        }
        y[q] = sum / (T(window_size(i, s.stride_h, s.pad_h, s.kh, s.h, pad_counts)) *
                      T(window_size(j, s.stride_w, s.pad_w, s.kw, s.w, pad_counts)));
    }
}

// dx (planes, H, W). One thread an input element: its share of every window that holds it.
template <class T>
__global__ void avg_pool2d_backward_kernel(T *__restrict__ dx, const T *__restrict__ grad, Pool2dShape s,
                                           bool pad_counts, FastDivide plane, FastDivide width, int64_t size) {
    for (int64_t q = first_index(); q < size; q += index_stride()) {
        int w;
        const T *out = grad + split_wide(q, plane, w) * (s.oh * s.ow);
        const int h = width.split(w);
        const Windows rows = windows_over(h, s.pad_h, s.kh, s.stride_h, s.oh);
        const Windows columns = windows_over(w, s.pad_w, s.kw, s.stride_w, s.ow);
        T sum = 0;
        for (int i = rows.first; i <= rows.last; i++) {
            const T high = T(window_size(i, s.stride_h, s.pad_h, s.kh, s.h, pad_counts));
            for (int j = columns.first; j <= columns.last; j++)
                sum += out[i * s.ow + j] / (high * T(window_size(j, s.stride_w, s.pad_w, s.kw, s.w, pad_counts)));
        }
        dx[q] = sum;
    }
}

// ------------------------------------------------------------------------------------------------ launchers

FastDivide in_plane(const Pool2dShape &s) { return FastDivide(int64_t{s.h} * s.w); }
FastDivide out_plane(const Pool2dShape &s) { return FastDivide(int64_t{s.oh} * s.ow); }

} // namespace

template <class T>
void max_pool2d_forward(T *y, int32_t *indices, const T *x, const Pool2dShape &s, cudaStream_t stream) {
    const int64_t size = s.y_size();
    if (size == 0)
        return;
    const auto kernel =
        s.halves() && is_aligned(x, 2 * sizeof(T)) ? max_pool2d_halves_forward_kernel<T> : max_pool2d_forward_kernel<T>;
    kernel<<<grid_for(size), BLOCK, 0, stream>>>(y, indices, x, s, out_plane(s), FastDivide(s.ow), size);
    check_launch("max_pool2d_forward_kernel");
}

template <class T>
void max_pool2d_backward(T *dx, const T *grad, const int32_t *indices, const Pool2dShape &s, cudaStream_t stream) {
    if (s.x_size() == 0)
        return;
    if (s.halves()) {
        const int64_t size = s.y_size();
        max_pool2d_halves_backward_kernel<T>
            <<<grid_for(size), BLOCK, 0, stream>>>(dx, grad, indices, s, out_plane(s), FastDivide(s.ow), size);
    } else {
        max_pool2d_backward_kernel<T><<<grid_for(s.x_size()), BLOCK, 0, stream>>>(dx, grad, indices, s, in_plane(s),
                                                                                  FastDivide(s.w), s.x_size());
    }
    check_launch("max_pool2d_backward_kernel");
}

template <class T>
void avg_pool2d_forward(T *y, const T *x, const Pool2dShape &s, bool count_include_pad, cudaStream_t stream) {
    const int64_t size = s.y_size();
    if (size == 0)
        return;
    avg_pool2d_forward_kernel<T>
        <<<grid_for(size), BLOCK, 0, stream>>>(y, x, s, count_include_pad, out_plane(s), FastDivide(s.ow), size);
    check_launch("avg_pool2d_forward_kernel");
}

template <class T>
void avg_pool2d_backward(T *dx, const T *grad, const Pool2dShape &s, bool count_include_pad, cudaStream_t stream) {
    const int64_t size = s.x_size();
    if (size == 0)
        return;
    avg_pool2d_backward_kernel<T>
        <<<grid_for(size), BLOCK, 0, stream>>>(dx, grad, s, count_include_pad, in_plane(s), FastDivide(s.w), size);
    check_launch("avg_pool2d_backward_kernel");
}

#define INSTANTIATE(T)                                                                                                 \
    template void max_pool2d_forward(T *, int32_t *, const T *, const Pool2dShape &, cudaStream_t);                    \
    template void max_pool2d_backward(T *, const T *, const int32_t *, const Pool2dShape &, cudaStream_t);             \
    template void avg_pool2d_forward(T *, const T *, const Pool2dShape &, bool, cudaStream_t);                         \
    template void avg_pool2d_backward(T *, const T *, const Pool2dShape &, bool, cudaStream_t);
INSTANTIATE(float)
INSTANTIATE(double)
#undef INSTANTIATE

} // namespace gradcuda
