// conv2d_unroll.cu: "unroll, then multiply" (PMPP chapter 16, im2col): we write the matrix of windows, cuBLAS
// multiplies.
//
// columns, of one image and group: (C/groups * KH*KW, OH*OW), row (c, kh, kw), column (i, j). y = weight @ columns; the
// weight's gradient is grad @ columns^T; the input's is weight^T @ grad, folded back. Images are taken in slices, so
// that the matrix stays below SLICE_BYTES. A pointwise convolution needs no unrolling: x is the matrix.
// Read first: conv2d_direct.cu. Next: conv2d_implicit_gemm.cu, which never writes the matrix.
#include "blas.h"
#include "common.cuh"
#include "conv2d.h"
#include "fast_divide.cuh"

#include <algorithm>

namespace gradcuda {
namespace {

struct Layout { // where entry (n, channel c, tap, pixel) of the unrolled matrix lies
    int64_t image, row;
};

// ------------------------------------------------------------------------------------------------ kernels

// columns from x, for `size` = images * C * OH*OW threads. One thread a pixel of one channel: it writes the KH * KW
// entries of its window. Neighbouring threads are neighbouring pixels, so reads and writes are coalesced.
template <class T>
__global__ void unroll_kernel(T *__restrict__ columns, const T *__restrict__ x, Conv2dShape s, Layout at,
                              FastDivide out_plane, FastDivide width, FastDivide channels, int64_t size) {
    for (int64_t index = first_index(); index < size; index += index_stride()) {
        int p, c; // index = (n * C + c) * OH*OW + p
        const int64_t plane = split_wide(index, out_plane, p), n = split_wide(plane, channels, c);
        int j = p;
        const int i = width.split(j), h0 = i * s.stride_h - s.pad_h, w0 = j * s.stride_w - s.pad_w;
        const T *from = x + plane * (s.h * s.w);
        T *to = columns + n * at.image + int64_t{c} * s.kh * s.kw * at.row + p;
        for (int k = 0; k < s.kh; k++)
            for (int l = 0; l < s.kw; l++, to += at.row) {
                const int h = h0 + k * s.dilation_h, w = w0 + l * s.dilation_w;
                *to = h >= 0 && h < s.h && w >= 0 && w < s.w ? from[h * s.w + w] : T(0);
            }
    }
}

// dx from columns, for `size` = images * C * H*W threads. One thread an input element: it gathers the entries that were
// unrolled from it, in the order of the taps, so no two threads add to one number.
template <class T>
__global__ void fold_kernel(T *__restrict__ dx, const T *__restrict__ columns, Conv2dShape s, Layout at,
                            FastDivide in_plane, FastDivide width, FastDivide channels, FastDivide stride_h,
                            FastDivide stride_w, int64_t size) {
    for (int64_t index = first_index(); index < size; index += index_stride()) {
        int w, c; // index = ((n * C + c) * H + h) * W + w
        const int64_t n = split_wide(split_wide(index, in_plane, w), channels, c);
        const int h = width.split(w);
        const T *from = columns + n * at.image + int64_t{c} * s.kh * s.kw * at.row;
        T sum = 0;
        for (int k = 0; k < s.kh; k++) {
            int rest_h = h + s.pad_h - k * s.dilation_h;
            if (rest_h < 0)
                break;
            const int i = stride_h.split(rest_h);
            if (rest_h || i >= s.oh)
                continue;
            for (int l = 0; l < s.kw; l++) {
                int rest_w = w + s.pad_w - l * s.dilation_w;
                if (rest_w < 0)
                    break;
                const int j = stride_w.split(rest_w);
                if (rest_w == 0 && j < s.ow)
                    sum += from[(k * s.kw + l) * at.row + i * s.ow + j];
            }
        }
        dx[index] = sum;
    }
}

// y (N, O, OH*OW) += bias (O,). One thread an element.
template <class T>
__global__ void add_bias_kernel(T *y, const T *__restrict__ bias, FastDivide plane, FastDivide channels, int64_t size) {
    for (int64_t index = first_index(); index < size; index += index_stride()) {
        int p, o;
        split_wide(split_wide(index, plane, p), channels, o);
        y[index] += bias[o];
    }
}

// ------------------------------------------------------------------------------------------------ launchers

constexpr int64_t SLICE_BYTES = int64_t{1} << 28;

int64_t rows(const Conv2dShape &s) { return int64_t{s.c} * s.taps(); } // of all groups

// Images whose matrix is written at a time.
int64_t slice(const Conv2dShape &s, size_t item) {
    const int64_t image = std::max<int64_t>(rows(s) * s.out_plane() * static_cast<int64_t>(item), 1);
    return std::max<int64_t>(1, std::min({s.n, SLICE_BYTES / image, int64_t{32768}}));
}

Layout by_image(const Conv2dShape &s) { return {rows(s) * s.out_plane(), s.out_plane()}; }

Conv2dShape images(Conv2dShape s, int64_t n) {
    s.n = n;
    return s;
}

template <class T> void unroll(T *columns, const T *x, const Conv2dShape &s, Layout at, cudaStream_t stream) {
    const int64_t size = s.n * s.c * s.out_plane();
    if (size == 0)
        return;
    unroll_kernel<T><<<grid_for(size), BLOCK, 0, stream>>>(columns, x, s, at, FastDivide(s.out_plane()),
                                                           FastDivide(s.ow), FastDivide(s.c), size);
    check_launch("conv2d unroll_kernel");
}

template <class T> void fold(T *dx, const T *columns, const Conv2dShape &s, cudaStream_t stream) {
    const int64_t size = s.x_size();
    if (size == 0)
        return;
    fold_kernel<T><<<grid_for(size), BLOCK, 0, stream>>>(dx, columns, s, by_image(s), FastDivide(s.plane()),
                                                         FastDivide(s.w), FastDivide(s.c), FastDivide(s.stride_h),
                                                         FastDivide(s.stride_w), size);
    check_launch("conv2d fold_kernel");
}

} // namespace

template <class T> void conv2d_add_bias(T *y, const T *bias, const Conv2dShape &s, cudaStream_t stream) {
    const int64_t size = s.y_size();
    if (size == 0)
        return;
    add_bias_kernel<T><<<grid_for(size), BLOCK, 0, stream>>>(y, bias, FastDivide(s.out_plane()), FastDivide(s.o), size);
    check_launch("conv2d add_bias_kernel");
}

template <class T> size_t conv2d_unroll_scratch(const Conv2dShape &s, Conv2dPass pass) {
    int64_t image = rows(s) * s.out_plane();
    if (pass == Conv2dPass::backward_weight)
        image += s.o * s.out_plane(); // grad, turned
    else if (s.pointwise())
        return 0;
    return static_cast<size_t>(slice(s, sizeof(T)) * image) * sizeof(T);
}

template <class T>
void conv2d_unroll_forward(T *y, const T *x, const T *weight, const T *bias, const Conv2dShape &s, Blas &blas,
                           void *scratch, cudaStream_t stream) {
    const int64_t m = s.group_o(), k = s.group_c() * s.taps(), p = s.out_plane();
    for (int64_t n = 0, step = slice(s, sizeof(T)); n < s.n && s.y_size() > 0; n += step) {
        const Conv2dShape part = images(s, std::min(step, s.n - n));
        const T *columns = x + n * s.c * s.plane();
        if (!s.pointwise()) {
            unroll(static_cast<T *>(scratch), columns, part, by_image(s), stream);
            columns = static_cast<T *>(scratch);
        }
        Gemm g{m, p, k, false, false, k, p, p, part.n, 0, rows(s) * p, s.o * p};
        for (int group = 0; group < s.groups; group++) // weight (m, k) @ columns (k, p), for each image
            blas.gemm(g, weight + group * m * k, columns + group * k * p, y + (n * s.o + group * m) * p);
    }
    if (bias)
        conv2d_add_bias(y, bias, s, stream);
}

template <class T>
void conv2d_unroll_backward_input(T *dx, const T *grad, const T *weight, const Conv2dShape &s, Blas &blas,
                                  void *scratch, cudaStream_t stream) {
    const int64_t m = s.group_o(), k = s.group_c() * s.taps(), p = s.out_plane();
    for (int64_t n = 0, step = slice(s, sizeof(T)); n < s.n && s.x_size() > 0; n += step) {
        const Conv2dShape part = images(s, std::min(step, s.n - n));
        T *to = dx + n * s.c * s.plane(), *columns = s.pointwise() ? to : static_cast<T *>(scratch);
        Gemm g{k, p, m, true, false, k, p, p, part.n, 0, s.o * p, rows(s) * p};
        for (int group = 0; group < s.groups; group++) // weight^T (k, m) @ grad (m, p), for each image
            blas.gemm(g, weight + group * m * k, grad + (n * s.o + group * m) * p, columns + group * k * p);
        if (!s.pointwise())
            fold(to, columns, part, stream);
    }
}

// All images of a slice stand side by side here, so that a group is one product with a long inner axis: columns is
// (C * KH*KW, images * OH*OW), and grad is turned to (O, images * OH*OW) by the same kernel, as a kernel of one tap.
template <class T>
void conv2d_unroll_backward_weight(T *dw, const T *grad, const T *x, const Conv2dShape &s, Blas &blas, void *scratch,
                                   cudaStream_t stream) {
    const int64_t m = s.group_o(), k = s.group_c() * s.taps(), p = s.out_plane(), step = slice(s, sizeof(T));
    T *columns = static_cast<T *>(scratch), *turned = columns + step * rows(s) * p;
    if (s.n * p == 0)
        CUDA_CHECK(cudaMemsetAsync(dw, 0, s.weight_size() * sizeof(T), stream));
    for (int64_t n = 0; n < s.n && p > 0; n += step) {
        const Conv2dShape part = images(s, std::min(step, s.n - n));
        const int64_t wide = part.n * p;
        unroll(columns, x + n * s.c * s.plane(), part, {p, wide}, stream);
        const Conv2dShape one_tap{part.n, s.o, s.oh, s.ow, s.o, 1, 1, s.oh, s.ow, 1, 1, 0, 0, 1, 1, 1};
        unroll(turned, grad + n * s.o * p, one_tap, {p, wide}, stream);
        Gemm g{m, k, wide, false, true, wide, wide, k};
        g.accumulate = n > 0;
        for (int group = 0; group < s.groups; group++) // grad (m, wide) @ columns (k, wide)^T
            blas.gemm(g, turned + group * m * wide, columns + group * k * wide, dw + group * m * k);
    }
}

#define INSTANTIATE(T)                                                                                                 \
    template size_t conv2d_unroll_scratch<T>(const Conv2dShape &, Conv2dPass);                                         \
    template void conv2d_unroll_forward(T *, const T *, const T *, const T *, const Conv2dShape &, Blas &, void *,     \
                                        cudaStream_t);                                                                 \
    template void conv2d_unroll_backward_input(T *, const T *, const T *, const Conv2dShape &, Blas &, void *,         \
                                               cudaStream_t);                                                          \
    template void conv2d_unroll_backward_weight(T *, const T *, const T *, const Conv2dShape &, Blas &, void *,        \
                                                cudaStream_t);                                                         \
    template void conv2d_add_bias(T *, const T *, const Conv2dShape &, cudaStream_t);
INSTANTIATE(float)
INSTANTIATE(double)
#undef INSTANTIATE

} // namespace gradcuda
