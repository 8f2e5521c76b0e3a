// cross_entropy.cu: -log softmax(logits)[label], its mean or sum over the rows, and the gradient of the logits.
//
// Two launches forward (rows, then one block that adds the losses up in a fixed order), one backward, or two for a
// mean over many rows. Rows labelled ignore_index count for nothing. A label that is no class is never used as an
// index: its loss is NaN, its gradient too, and the first one is reported. Read first: softmax.cu.
#include "common.cuh"
#include "softmax.h"

namespace gradcuda {
namespace {

constexpr int64_t COUNT_INSIDE = 4096; // rows up to which every block of the backward counts the labels itself

// ------------------------------------------------------------------------------------------------ kernels

// log_probs (N, C) and losses (N,) from logits (N, C) and labels (N,). One warp a row.
template <class T, class Label>
__global__ void cross_entropy_rows_kernel(T *__restrict__ losses, T *__restrict__ log_probs,
                                          const T *__restrict__ logits, const Label *__restrict__ labels, int64_t n,
                                          int64_t classes, int64_t ignore_index, ErrorWord word) {
    const int warps = blockDim.x / WARP, lane = threadIdx.x % WARP;
    const Maximum maximum;
    for (int64_t row = int64_t{blockIdx.x} * warps + threadIdx.x / WARP; row < n; row += int64_t{gridDim.x} * warps) {
        const T *x = logits + row * classes;
        T largest = -INFINITY;
        for (int64_t i = lane; i < classes; i += WARP)
            largest = maximum(largest, x[i]);
        largest = warp_max(largest);
        double total = 0.0;
        for (int64_t i = lane; i < classes; i += WARP)
            total += exp(x[i] - largest);
        const T log_total = static_cast<T>(log(warp_sum(total)));
        for (int64_t i = lane; i < classes; i += WARP)
            log_probs[row * classes + i] = x[i] - largest - log_total;
        if (lane == 0) {
            const int64_t label = labels[row];
            T loss = 0;
            if (label >= 0 && label < classes && label != ignore_index) {
                loss = -(x[label] - largest - log_total);
            } else if (label != ignore_index) {
                loss = NAN;
                report_bad_index(word, CROSS_ENTROPY, label, classes);
            }
            losses[row] = loss;
        }
    }
}

// How many of n labels are not ignore_index: each of the block's threads counts every blockDim-th.
template <class Label> __device__ double count_kept(const Label *labels, int64_t n, int64_t ignore_index) {
    int64_t kept = 0;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
        kept += labels[i] != ignore_index;
    return block_sum(static_cast<double>(kept));
}

// loss () = sum of losses (N,), for a mean over the rows that are not ignored. One block owns everything.
template <class T, class Label>
__global__ void cross_entropy_sum_kernel(T *loss, const T *__restrict__ losses, const Label *__restrict__ labels,
                                         int64_t n, int64_t ignore_index, bool mean) {
    double sum = 0.0;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
        sum += losses[i];
    sum = block_sum(sum);
    const double kept = mean ? count_kept(labels, n, ignore_index) : 1.0;
    if (threadIdx.x == 0)
        *loss = static_cast<T>(sum / kept); // none kept: 0 / 0 is NaN
}

// kept () from labels (N,). One block owns everything.
template <class Label>
__global__ void cross_entropy_count_kernel(double *kept, const Label *__restrict__ labels, int64_t n,
                                           int64_t ignore_index) {
    const double count = count_kept(labels, n, ignore_index);
    if (threadIdx.x == 0)
        *kept = count;
}

// dlogits (N, C) = (softmax - one_hot) * grad / kept; rows that are ignored are exactly 0. One thread an element; grad
// is (), or (N,) for no reduction. kept nullptr: the block counts for itself.
template <class T, class Label>
__global__ void cross_entropy_backward_kernel(T *__restrict__ dlogits, const T *__restrict__ grad,
                                              const T *__restrict__ log_probs, const Label *__restrict__ labels,
                                              int64_t n, int64_t classes, int64_t ignore_index, LossReduction reduction,
                                              const double *kept) {
    T divisor = 1;
    if (reduction == LossReduction::mean)
        divisor = static_cast<T>(kept != nullptr ? *kept : count_kept(labels, n, ignore_index));
    for (int64_t i = first_index(); i < n * classes; i += index_stride()) {
        const int64_t row = i / classes, label = labels[row];
        T value = 0;
        if (label != ignore_index) {
            const T scale = grad[reduction == LossReduction::none ? row : 0] / divisor;
            value = label >= 0 && label < classes ? (exp(log_probs[i]) - T(i - row * classes == label)) * scale : NAN;
        }
        dlogits[i] = value;
    }
}

// ------------------------------------------------------------------------------------------------ launchers

constexpr int ONE_BLOCK = 1024;

} // namespace

template <class T, class Label>
void cross_entropy_forward(T *loss, T *log_probs, T *losses, const T *logits, const Label *labels, int64_t n,
                           int64_t classes, int64_t ignore_index, LossReduction reduction, ErrorWord word,
                           cudaStream_t stream) {
    T *rows = reduction == LossReduction::none ? loss : losses;
    if (n > 0) {
        cross_entropy_rows_kernel<T, Label>
            <<<grid_for(n, 4), 4 * WARP, 0, stream>>>(rows, log_probs, logits, labels, n, classes, ignore_index, word);
        check_launch("cross_entropy_rows_kernel");
    }
    if (reduction == LossReduction::none)
        return;
    const int threads = n <= BLOCK ? BLOCK : ONE_BLOCK;
    cross_entropy_sum_kernel<T, Label>
        <<<1, threads, 0, stream>>>(loss, losses, labels, n, ignore_index, reduction == LossReduction::mean);
    check_launch("cross_entropy_sum_kernel");
}

template <class T, class Label>
void cross_entropy_backward(T *dlogits, const T *grad, const T *log_probs, const Label *labels, int64_t n,
                            int64_t classes, int64_t ignore_index, LossReduction reduction, double *kept,
                            cudaStream_t stream) {
    if (n * classes == 0)
        return;
    const bool count = reduction == LossReduction::mean && n > COUNT_INSIDE;
    if (count) {
        cross_entropy_count_kernel<Label><<<1, ONE_BLOCK, 0, stream>>>(kept, labels, n, ignore_index);
        check_launch("cross_entropy_count_kernel");
    }
    cross_entropy_backward_kernel<T, Label><<<grid_for(n * classes), BLOCK, 0, stream>>>(
        dlogits, grad, log_probs, labels, n, classes, ignore_index, reduction, count ? kept : nullptr);
    check_launch("cross_entropy_backward_kernel");
}

#define INSTANTIATE(T, L)                                                                                              \
    template void cross_entropy_forward(T *, T *, T *, const T *, const L *, int64_t, int64_t, int64_t, LossReduction, \
                                        ErrorWord, cudaStream_t);                                                      \
    template void cross_entropy_backward(T *, const T *, const T *, const L *, int64_t, int64_t, int64_t,              \
                                         LossReduction, double *, cudaStream_t);
INSTANTIATE(float, int32_t)
INSTANTIATE(float, int64_t)
INSTANTIATE(double, int32_t)
INSTANTIATE(double, int64_t)
#undef INSTANTIATE

} // namespace gradcuda
