// pool2d.h: max and average pooling, NCHW. The output size is given; a window may hang over the right and lower edge.
//
// x (planes, H, W), y and grad (planes, OH, OW) with planes = N * C; indices int32, flat in the H*W plane. T is float
// or double. Outputs are overwritten; nothing is allocated. Next: pool2d.cu.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

namespace gradcuda {

struct Pool2dShape {
    int64_t planes;
    int h, w, oh, ow, kh, kw;
    int stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w;

    int64_t x_size() const { return planes * h * w; }
    int64_t y_size() const { return planes * oh * ow; }
    bool halves() const { // disjoint 2x2 windows that cover the plane
        return kh == 2 && kw == 2 && stride_h == 2 && stride_w == 2 && pad_h == 0 && pad_w == 0 && dilation_h == 1 &&
               dilation_w == 1 && h == 2 * oh && w == 2 * ow;
    }
};

template <class T>
void max_pool2d_forward(T *y, int32_t *indices, const T *x, const Pool2dShape &s, cudaStream_t stream);
template <class T>
void max_pool2d_backward(T *dx, const T *grad, const int32_t *indices, const Pool2dShape &s, cudaStream_t stream);
template <class T>
void avg_pool2d_forward(T *y, const T *x, const Pool2dShape &s, bool count_include_pad, cudaStream_t stream);
template <class T>
void avg_pool2d_backward(T *dx, const T *grad, const Pool2dShape &s, bool count_include_pad, cudaStream_t stream);

} // namespace gradcuda
