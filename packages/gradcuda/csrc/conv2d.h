// conv2d.h: what every convolution kernel is given, the launchers, and which algorithm runs where.
//
// Cross-correlation, NCHW, row-major: x (N, C, H, W), weight (O, C/groups, KH, KW), bias (O,) or nullptr, y and grad
// (N, O, OH, OW). Outputs are overwritten. T is float or double. A launcher neither allocates nor synchronises, so
// every one of them can be captured; scratch comes from the caller, who asks the ..._scratch function for its bytes.
// Next: conv2d_direct.cu, the plain one; conv2d_unroll.cu; conv2d_implicit_gemm.cu; conv2d_choose.cpp, the table.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

namespace gradcuda {

class Blas;

struct Conv2dShape {
    int64_t n;
    int c, h, w, o, kh, kw, oh, ow;
    int stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w;
    int groups;

    int64_t plane() const { return int64_t{h} * w; }
    int64_t out_plane() const { return int64_t{oh} * ow; }
    int taps() const { return kh * kw; }
    int group_c() const { return c / groups; }
    int group_o() const { return o / groups; }
    int64_t x_size() const { return n * c * plane(); }
    int64_t y_size() const { return n * o * out_plane(); }
    int64_t weight_size() const { return int64_t{o} * group_c() * taps(); }
    bool pointwise() const {
        return taps() == 1 && stride_h == 1 && stride_w == 1 && pad_h == 0 && pad_w == 0;
    }
};

} // namespace gradcuda
