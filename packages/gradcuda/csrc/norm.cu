// norm.cu: batch normalisation, forward and backward, in two launches each.
//
// The first kernel cuts each channel into parts and leaves two sums for each part; the second joins a channel's parts,
// in order and in float64, and writes the channel. Means and squared distances are joined as Chan, Golub and LeVeque
// (1979) do it, so a large mean costs no digits of the variance.
#include "common.cuh"
#include "norm.h"

#include <algorithm>
#include <string>

namespace gradcuda {
namespace {

struct Partial { // forward: mean and sum of squared distances from it; backward: sums of grad and of grad * normal
    double a, b;
};

// A channel's N * inner entries, part by part. Threads walk them with a stride; no division in the loop.
struct Channel {
    NormShape s;
    int parts;

    __host__ __device__ int64_t count() const { return s.n * s.inner; }
    __host__ __device__ int64_t part_size() const { return (count() + parts - 1) / parts; }

    // f(offset in the tensor) for this thread's entries of the block's part of channel c
    template <class F> __device__ void walk(int64_t c, int part, const F &f) const {
        const int64_t end = min(count(), (part + 1) * part_size()), wide = max(s.inner, int64_t{1});
        const int64_t step_n = blockDim.x / wide, step_inner = blockDim.x - step_n * wide;
        int64_t i = part * part_size() + threadIdx.x, n = i / wide, inner = i - n * wide;
        for (; i < end; i += blockDim.x) {
            f((n * s.c + c) * s.inner + inner);
            n += step_n;
            inner += step_inner;
            if (inner >= s.inner) {
                inner -= s.inner;
                n++;
            }
        }
    }
};

// ------------------------------------------------------------------------------------------------ kernels
// In all four, one block owns one part of one channel: blockIdx.x = channel * parts + part.

// partials (C, parts) from x.
template <class T> __global__ void batch_norm_statistics_kernel(Partial *partials, const T *x, Channel channel) {
    const int64_t c = blockIdx.x / channel.parts;
    const int part = static_cast<int>(blockIdx.x % channel.parts);
    const int64_t begin = part * channel.part_size();
    const int64_t count = max(int64_t{0}, min(channel.count(), begin + channel.part_size()) - begin);
    double sum = 0.0, squares = 0.0;
    channel.walk(c, part, [&](int64_t at) { sum += x[at]; });
    const double mean = count > 0 ? block_sum(sum) / count : 0.0;
    channel.walk(c, part, [&](int64_t at) { // the part lies in the cache by now
        const double distance = x[at] - mean;
        squares += distance * distance;
    });
    squares = block_sum(squares);
    if (threadIdx.x == 0)
        partials[blockIdx.x] = {mean, squares};
}

// y; mean and var (C,) from the partials.
template <class T>
__global__ void batch_norm_forward_kernel(T *y, T *mean_out, T *var_out, const T *x, const T *weight, const T *bias,
                                          double eps, const Partial *partials, Channel channel) {
    const int64_t c = blockIdx.x / channel.parts, count = channel.count(), size = channel.part_size();
    const int part = static_cast<int>(blockIdx.x % channel.parts);
    double mean = 0.0, squares = 0.0;
    for (int p = 0; p < channel.parts; p++)
        mean += partials[c * channel.parts + p].a * max(int64_t{0}, min(count - p * size, size));
    mean /= count;
    for (int p = 0; p < channel.parts; p++) {
        const Partial one = partials[c * channel.parts + p];
        const double off = one.a - mean;
        squares += one.b + off * off * max(int64_t{0}, min(count - p * size, size));
    }
    const double var = squares / count;
    if (part == 0 && threadIdx.x == 0) {
        mean_out[c] = static_cast<T>(mean);
        var_out[c] = static_cast<T>(var);
    }
    const T centre = static_cast<T>(mean), scale = static_cast<T>(weight[c] / sqrt(var + eps)), shift = bias[c];
    channel.walk(c, part, [&](int64_t at) { y[at] = (x[at] - centre) * scale + shift; });
}

// partials (C, parts) from grad and x.
template <class T>
__global__ void batch_norm_gradient_sums_kernel(Partial *partials, const T *grad, const T *x, const T *mean,
                                                const T *var, double eps, Channel channel) {
    const int64_t c = blockIdx.x / channel.parts;
    const int part = static_cast<int>(blockIdx.x % channel.parts);
    const T centre = mean[c], rstd = static_cast<T>(1.0 / sqrt(static_cast<double>(var[c]) + eps));
    double sum = 0.0, weighted = 0.0;
    channel.walk(c, part, [&](int64_t at) {
        sum += grad[at];
        weighted += static_cast<double>(grad[at]) * ((x[at] - centre) * rstd);
    });
    sum = block_sum(sum);
    weighted = block_sum(weighted);
    if (threadIdx.x == 0)
        partials[blockIdx.x] = {sum, weighted};
}

// dx = (grad - (dbias + normal * dweight) / count) * weight * rstd; dweight and dbias (C,) from the partials.
template <class T>
__global__ void batch_norm_backward_kernel(T *dx, T *dweight, T *dbias, const T *grad, const T *x, const T *weight,
                                           const T *mean, const T *var, double eps, const Partial *partials,
                                           Channel channel) {
    const int64_t c = blockIdx.x / channel.parts;
    const int part = static_cast<int>(blockIdx.x % channel.parts);
    double sum = 0.0, weighted = 0.0;
    for (int p = 0; p < channel.parts; p++) {
        sum += partials[c * channel.parts + p].a;
        weighted += partials[c * channel.parts + p].b;
    }
    if (part == 0 && threadIdx.x == 0) {
        dbias[c] = static_cast<T>(sum);
        dweight[c] = static_cast<T>(weighted);
    }
    const T centre = mean[c], rstd = static_cast<T>(1.0 / sqrt(static_cast<double>(var[c]) + eps));
    const T scale = weight[c] * rstd;
    const T flat = static_cast<T>(sum / channel.count()), slope = static_cast<T>(weighted / channel.count());
    channel.walk(c, part, [&](int64_t at) { dx[at] = (grad[at] - flat - (x[at] - centre) * rstd * slope) * scale; });
}

// ------------------------------------------------------------------------------------------------ launchers

// So many parts that some 528 blocks run, none of them shorter than 1024 entries.
Channel cut(const NormShape &s) {
    const int64_t wanted = (528 + s.c - 1) / std::max<int64_t>(s.c, 1), most = s.n * s.inner / 1024;
    return {s, static_cast<int>(std::max<int64_t>(1, std::min(wanted, most)))};
}

unsigned blocks(const Channel &channel) {
    const int64_t n = channel.s.c * channel.parts;
    if (n > INT32_MAX)
        throw CudaError("batch_norm: too many channels: " + std::to_string(channel.s.c));
    return static_cast<unsigned>(n);
}

} // namespace

size_t batch_norm_scratch(const NormShape &s) { return static_cast<size_t>(s.c) * cut(s).parts * sizeof(Partial); }

template <class T>
void batch_norm_forward(T *y, T *mean, T *var, const T *x, const T *weight, const T *bias, double eps,
                        const NormShape &s, void *partials, cudaStream_t stream) {
    const Channel channel = cut(s);
    if (s.c == 0)
        return;
    Partial *parts = static_cast<Partial *>(partials);
    batch_norm_statistics_kernel<T><<<blocks(channel), BLOCK, 0, stream>>>(parts, x, channel);
    check_launch("batch_norm_statistics_kernel");
    batch_norm_forward_kernel<T>
        <<<blocks(channel), BLOCK, 0, stream>>>(y, mean, var, x, weight, bias, eps, parts, channel);
    check_launch("batch_norm_forward_kernel");
}

template <class T>
void batch_norm_backward(T *dx, T *dweight, T *dbias, const T *grad, const T *x, const T *weight, const T *mean,
                         const T *var, double eps, const NormShape &s, void *partials, cudaStream_t stream) {
    const Channel channel = cut(s);
    if (s.c == 0)
        return;
    Partial *parts = static_cast<Partial *>(partials);
    batch_norm_gradient_sums_kernel<T><<<blocks(channel), BLOCK, 0, stream>>>(parts, grad, x, mean, var, eps, channel);
    check_launch("batch_norm_gradient_sums_kernel");
    batch_norm_backward_kernel<T>
        <<<blocks(channel), BLOCK, 0, stream>>>(dx, dweight, dbias, grad, x, weight, mean, var, eps, parts, channel);
    check_launch("batch_norm_backward_kernel");
}

#define INSTANTIATE(T)                                                                                                 \
    template void batch_norm_forward(T *, T *, T *, const T *, const T *, const T *, double, const NormShape &,        \
                                     void *, cudaStream_t);                                                            \
    template void batch_norm_backward(T *, T *, T *, const T *, const T *, const T *, const T *, const T *, double,    \
                                      const NormShape &, void *, cudaStream_t);
INSTANTIATE(float)
INSTANTIATE(double)
#undef INSTANTIATE

} // namespace gradcuda
