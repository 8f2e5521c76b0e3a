// optim.h: the in-place optimizers, for all parameters at once. T is float or double.
//
// rate (float64) and each parameter's step count (int64) lie in device memory, so that a recorded step sees a changed
// rate and counts on. Bias corrections are worked out in float64. Next: optim.cu.
#pragma once

#include <cstdint>
#include <vector>

#include <cuda_runtime_api.h>

namespace gradcuda {

template <class T> struct Update {
    T *parameter;
    const T *grad;
    T *first, *second; // Adam's moments; SGD's velocity in first, or nullptr
    int64_t *step;
    int64_t size;
};

struct SgdOptions {
    double momentum, dampening, weight_decay;
    bool nesterov;
};

struct AdamOptions {
    double beta1, beta2, eps, weight_decay;
    bool decoupled;
};

template <class T>
void sgd_update(const std::vector<Update<T>> &updates, const double *rate, const SgdOptions &o, cudaStream_t stream);
template <class T>
void adam_update(const std::vector<Update<T>> &updates, const double *rate, const AdamOptions &o, cudaStream_t stream);

} // namespace gradcuda
