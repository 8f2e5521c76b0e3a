// norm.h: batch normalisation over every axis but 1 (Ioffe and Szegedy 2015). T is float or double.
//
// x, y, grad, dx (N, C, inner); weight, bias, mean, var and their gradients (C,); var divides by the count. Outputs are
// overwritten; partials is scratch of batch_norm_scratch bytes. Next: norm.cu.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

namespace gradcuda {

struct NormShape {
    int64_t n, c, inner;
};

size_t batch_norm_scratch(const NormShape &s);

template <class T>
void batch_norm_forward(T *y, T *mean, T *var, const T *x, const T *weight, const T *bias, double eps,
                        const NormShape &s, void *partials, cudaStream_t stream);
template <class T>
void batch_norm_backward(T *dx, T *dweight, T *dbias, const T *grad, const T *x, const T *weight, const T *mean,
                         const T *var, double eps, const NormShape &s, void *partials, cudaStream_t stream);

} // namespace gradcuda
