// conv2d_direct.cu: the convolution and its two gradients as the formula has them (PMPP chapter 16, the first kernel).
//
// One thread an output element, plain loops over (c, kh, kw), everything read from global memory: slow where channels
// are many, and the one to read first. It is also the right one where a group has few channels (depthwise).
// Padding is a real zero that is multiplied like any other number. Next: conv2d_unroll.cu.
#include "common.cuh"
#include "conv2d.h"
#include "fast_divide.cuh"

namespace gradcuda {
namespace {

// ------------------------------------------------------------------------------------------------ kernels

// One entry of the zero-padded image.
template <class T> __device__ T padded(const T *plane, const Conv2dShape &s, int h, int w) {
    return h >= 0 && h < s.h && w >= 0 && w < s.w ? plane[h * s.w + w] : T(0);
}

// y (N, O, OH, OW) from x (N, C, H, W) and weight (O, C/groups, KH, KW). One thread an output element.
template <class T>
__global__ void conv2d_direct_forward_kernel(T *__restrict__ y, const T *__restrict__ x, const T *__restrict__ weight,
                                             const T *__restrict__ bias, Conv2dShape s, FastDivide out_plane,
                                             FastDivide width, FastDivide channels, int64_t size) {
    for (int64_t index = first_index(); index < size; index += index_stride()) {
        int j, o; // index = ((n * O + o) * OH + i) * OW + j
        const int64_t n = split_wide(split_wide(index, out_plane, j), channels, o);
        const int i = width.split(j), group_c = s.c / s.groups;
        const T *plane = x + (n * s.c + o / (s.o / s.groups) * group_c) * (s.h * s.w);
        const T *w = weight + int64_t{o} * group_c * s.kh * s.kw;
        T sum = 0;
        for (int c = 0; c < group_c; c++, plane += s.h * s.w)
            for (int k = 0; k < s.kh; k++)
                for (int l = 0; l < s.kw; l++)
                    sum = fma(*w++,
                              padded(plane, s, i * s.stride_h - s.pad_h + k * s.dilation_h,
                                     j * s.stride_w - s.pad_w + l * s.dilation_w),
                              sum);
        y[index] = bias ? sum + bias[o] : sum;
    }
}

// dx (N, C, H, W) from grad (N, O, OH, OW). One thread an input element: it gathers from every output that saw it.
template <class T>
__global__ void conv2d_direct_backward_input_kernel(T *__restrict__ dx, const T *__restrict__ grad,
                                                    const T *__restrict__ weight, Conv2dShape s, FastDivide in_plane,
                                                    FastDivide width, FastDivide channels, FastDivide stride_h,
                                                    FastDivide stride_w, int64_t size) {
    for (int64_t index = first_index(); index < size; index += index_stride()) {
        int w, c; // index = ((n * C + c) * H + h) * W + w
        const int64_t n = split_wide(split_wide(index, in_plane, w), channels, c);
        const int h = width.split(w), group_c = s.c / s.groups, group_o = s.o / s.groups, taps = s.kh * s.kw;
        const int group = c / group_c, first_o = group * group_o;
        T sum = 0;
        for (int o = first_o; o < first_o + group_o; o++) {
            const T *plane = grad + (n * s.o + o) * (s.oh * s.ow);
            const T *tap = weight + (int64_t{o} * group_c + (c - group * group_c)) * taps;
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
                        sum = fma(tap[k * s.kw + l], plane[i * s.ow + j], sum);
                }
            }
        }
        dx[index] = sum;
    }
}

// dw (O, C/groups, KH, KW). One block a weight: its threads walk over all (n, i, j), then add up as a tree.
template <class T>
__global__ void conv2d_direct_backward_weight_kernel(T *__restrict__ dw, const T *__restrict__ grad,
                                                     const T *__restrict__ x, Conv2dShape s, FastDivide out_plane,
                                                     FastDivide width) {
    int l = static_cast<int>(blockIdx.x % (s.kh * s.kw));
    const int64_t filter = blockIdx.x / (s.kh * s.kw);
    const int group_c = s.c / s.groups, o = static_cast<int>(filter / group_c), k = l / s.kw;
    const int c = o / (s.o / s.groups) * group_c + static_cast<int>(filter % group_c);
    l -= k * s.kw;
    const int64_t terms = s.n * s.oh * s.ow;
    T sum = 0;
    for (int64_t term = threadIdx.x; term < terms; term += blockDim.x) {
        int j;
        const int64_t n = split_wide(term, out_plane, j);
        const T g = grad[(n * s.o + o) * (s.oh * s.ow) + j];
        const int i = width.split(j);
        sum = fma(g,
                  padded(x + (n * s.c + c) * (s.h * s.w), s, i * s.stride_h - s.pad_h + k * s.dilation_h,
                         j * s.stride_w - s.pad_w + l * s.dilation_w),
                  sum);
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0)
        dw[blockIdx.x] = sum;
}

// ------------------------------------------------------------------------------------------------ launchers

} // namespace

template <class T>
void conv2d_direct_forward(T *y, const T *x, const T *weight, const T *bias, const Conv2dShape &s,
                           cudaStream_t stream) {
    const int64_t size = s.y_size();
    if (size == 0)
        return;
    conv2d_direct_forward_kernel<T><<<grid_for(size), BLOCK, 0, stream>>>(
        y, x, weight, bias, s, FastDivide(s.out_plane()), FastDivide(s.ow), FastDivide(s.o), size);
    check_launch("conv2d_direct_forward_kernel");
}

template <class T>
void conv2d_direct_backward_input(T *dx, const T *grad, const T *weight, const Conv2dShape &s, cudaStream_t stream) {
    const int64_t size = s.x_size();
    if (size == 0)
        return;
    conv2d_direct_backward_input_kernel<T>
        <<<grid_for(size), BLOCK, 0, stream>>>(dx, grad, weight, s, FastDivide(s.plane()), FastDivide(s.w),
                                               FastDivide(s.c), FastDivide(s.stride_h), FastDivide(s.stride_w), size);
    check_launch("conv2d_direct_backward_input_kernel");
}

template <class T>
void conv2d_direct_backward_weight(T *dw, const T *grad, const T *x, const Conv2dShape &s, cudaStream_t stream) {
    conv2d_direct_backward_weight_kernel<T><<<exact_grid(s.weight_size()), BLOCK, 0, stream>>>(
        dw, grad, x, s, FastDivide(s.out_plane()), FastDivide(s.ow));
    check_launch("conv2d_direct_backward_weight_kernel");
}

#define INSTANTIATE(T)                                                                                                 \
    template void conv2d_direct_forward(T *, const T *, const T *, const T *, const Conv2dShape &, cudaStream_t);      \
    template void conv2d_direct_backward_input(T *, const T *, const T *, const Conv2dShape &, cudaStream_t);          \
    template void conv2d_direct_backward_weight(T *, const T *, const T *, const Conv2dShape &, cudaStream_t);
INSTANTIATE(float)
INSTANTIATE(double)
#undef INSTANTIATE

} // namespace gradcuda
