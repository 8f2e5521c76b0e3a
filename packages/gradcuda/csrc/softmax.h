// softmax.h: softmax and its logarithm along any axis, and cross-entropy with integer labels.
//
// An array is seen as (outer, length, inner) around the axis. T is float or double; labels are int32 or int64. Outputs
// are overwritten; nothing is allocated. Next: softmax.cu, cross_entropy.cu.
#pragma once

#include "context.h"

#include <cstdint>

namespace gradcuda {

struct AxisShape {
    int64_t outer, length, inner;
};

enum class LossReduction { mean, sum, none };

template <class T> void softmax_forward(T *y, const T *x, const AxisShape &s, bool logarithm, cudaStream_t stream);
template <class T>
void softmax_backward(T *dx, const T *grad, const T *y, const AxisShape &s, bool logarithm, cudaStream_t stream);

// log_probs (N, C) and loss, () or, for LossReduction::none, (N,). losses: scratch of N numbers, unless none. A label
// outside 0..C-1 that is not ignore_index makes its loss NaN and is reported in `word`.
template <class T, class Label>
void cross_entropy_forward(T *loss, T *log_probs, T *losses, const T *logits, const Label *labels, int64_t n,
                           int64_t classes, int64_t ignore_index, LossReduction reduction, ErrorWord word,
                           cudaStream_t stream);

// dlogits (N, C). kept: scratch for one number.
template <class T, class Label>
void cross_entropy_backward(T *dlogits, const T *grad, const T *log_probs, const Label *labels, int64_t n,
                            int64_t classes, int64_t ignore_index, LossReduction reduction, double *kept,
                            cudaStream_t stream);

} // namespace gradcuda
