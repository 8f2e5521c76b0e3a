// conv2d_cudnn.h: cuDNN's convolution, if the library is there. Never needed; a yardstick beside our own kernels.
// Next: conv2d_cudnn.cpp.
#pragma once

#include "array.h"
#include "conv2d.h"

namespace gradcuda {

// The library's version as it gives it (91900 for 9.19.0). Loads it; throws CudaError that says where it was looked
// for. Makes no CUDA context.
int64_t cudnn_version(const std::vector<std::string> &paths);

// out = y, dx or dw by `pass`; a, b = (x, weight), (grad, weight) or (grad, x). float32 or float64, not empty. Takes
// its workspace from the context's pool. Deterministic algorithms only; float32 runs on plain FMA units unless tf32.
void conv2d_cudnn(Context &context, Conv2dPass pass, DType dtype, void *out, const void *a, const void *b,
                  const Conv2dShape &s);

} // namespace gradcuda
