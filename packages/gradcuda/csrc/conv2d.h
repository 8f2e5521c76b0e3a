// conv2d.h: what every convolution kernel is given, the launchers, and the choice between them.
//
// Cross-correlation, NCHW, row-major: x (N, C, H, W), weight (O, C/groups, KH, KW), bias (O,) or nullptr, y and grad
// (N, O, OH, OW). Outputs are overwritten. T is float or double. A launcher neither allocates nor synchronises, so
// every one of them can be recorded; scratch comes from the caller, who asks a ..._scratch function for its bytes.
// Next: conv2d_direct.cu, the plain one; conv2d_unroll.cu; conv2d_implicit_gemm.cu; conv2d_choose.cpp, the table.
#pragma once

#include "errors.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace gradcuda {

class Blas;

// n may pass 2^31, and so may every tensor; one plane, and the entries behind one output, may not.
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
    bool pointwise() const { // x itself is the matrix of windows
        return taps() == 1 && stride_h == 1 && stride_w == 1 && pad_h == 0 && pad_w == 0;
    }
};

enum class Conv2dAlgorithm { direct, unroll, implicit_gemm, cudnn };
enum class Conv2dPass { forward, backward_input, backward_weight };

// The algorithm of that name; "auto" looks the shape up in the table. conv2d_choose.cpp.
Conv2dAlgorithm choose_conv2d(const std::string &name, const Conv2dShape &s, Conv2dPass pass);

// conv2d_direct.cu
template <class T>
void conv2d_direct_forward(T *y, const T *x, const T *weight, const T *bias, const Conv2dShape &s, cudaStream_t stream);
template <class T>
void conv2d_direct_backward_input(T *dx, const T *grad, const T *weight, const Conv2dShape &s, cudaStream_t stream);
template <class T>
void conv2d_direct_backward_weight(T *dw, const T *grad, const T *x, const Conv2dShape &s, cudaStream_t stream);

// conv2d_unroll.cu; TF32 is the Blas object's own setting
template <class T> size_t conv2d_unroll_scratch(const Conv2dShape &s, Conv2dPass pass);
template <class T>
void conv2d_unroll_forward(T *y, const T *x, const T *weight, const T *bias, const Conv2dShape &s, Blas &blas,
                           void *scratch, cudaStream_t stream);
template <class T>
void conv2d_unroll_backward_input(T *dx, const T *grad, const T *weight, const Conv2dShape &s, Blas &blas,
                                  void *scratch, cudaStream_t stream);
template <class T>
void conv2d_unroll_backward_weight(T *dw, const T *grad, const T *x, const Conv2dShape &s, Blas &blas, void *scratch,
                                   cudaStream_t stream);
template <class T> void conv2d_add_bias(T *y, const T *bias, const Conv2dShape &s, cudaStream_t stream);

// conv2d_implicit_gemm.cu, conv2d_implicit_gemm_weight.cu; tf32 needs compute capability 8.0 and counts for float only
template <class T>
void conv2d_implicit_gemm_forward(T *y, const T *x, const T *weight, const T *bias, const Conv2dShape &s, bool tf32,
                                  cudaStream_t stream);
template <class T>
void conv2d_implicit_gemm_backward_input(T *dx, const T *grad, const T *weight, const Conv2dShape &s, bool tf32,
                                         cudaStream_t stream);
template <class T> size_t conv2d_implicit_gemm_backward_weight_scratch(const Conv2dShape &s);
template <class T>
void conv2d_implicit_gemm_backward_weight(T *dw, const T *grad, const T *x, const Conv2dShape &s, bool tf32,
                                          void *scratch, cudaStream_t stream);

// One thread block for each of so many tiles, all in x of the grid, which ends at 2^31 - 1.
inline unsigned exact_grid(int64_t blocks) {
    if (blocks > INT32_MAX)
        throw CudaError("conv2d: too large for one launch: " + std::to_string(blocks) + " blocks");
    return static_cast<unsigned>(blocks);
}

} // namespace gradcuda
