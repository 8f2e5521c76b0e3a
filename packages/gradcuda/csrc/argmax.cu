// argmax: the first NaN if there is one, else the first of the largest.
#include "common.cuh"
#include "reduce.h"

#include <algorithm>

namespace gradcuda {

// ---------------------------------------------------------------- kernels

namespace {

template <typename T> struct Best {
    T value;
    int64_t place; // -1: nothing seen yet
};

// NaN beats all; of equals, the earlier place.
template <typename T> __device__ Best<T> better(Best<T> a, Best<T> b) {
    if (b.place < 0)
        return a;
    if (a.place < 0)
        return b;
    const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
    if (a_nan != b_nan)
        return a_nan ? a : b;
    if (a_nan || a.value == b.value)
        return a.place < b.place ? a : b;
    return a.value > b.value ? a : b;
}

// out (outputs,), x read along kept and terms. One block an output, grid-stride.
template <typename T>
__global__ void argmax_kernel(int64_t *out, const T *x, Layout kept, Layout terms, int64_t outputs, int64_t count) {
    __shared__ T values[BLOCK];
    __shared__ int64_t places[BLOCK];
    for (int64_t o = blockIdx.x; o < outputs; o += gridDim.x) {
        int64_t base[1], at[1];
        find_offsets(kept, o, base);
        Best<T> best = {T(0), -1};
        for (int64_t r = threadIdx.x; r < count; r += BLOCK) {
            find_offsets(terms, r, at);
            best = better(best, Best<T>{x[base[0] + at[0]], r});
        }
        values[threadIdx.x] = best.value;
        places[threadIdx.x] = best.place;
        __syncthreads();
        for (int half = BLOCK / 2; half > 0; half /= 2) {
            if (threadIdx.x < half) {
                const int other = threadIdx.x + half;
                best = better(best, Best<T>{values[other], places[other]});
                values[threadIdx.x] = best.value;
                places[threadIdx.x] = best.place;
            }
            __syncthreads();
        }
        if (threadIdx.x == 0)
            out[o] = best.place;
        __syncthreads(); // values are written again for the next output
    }
}

// ---------------------------------------------------------------- launchers

template <typename T> void launch(int64_t *out, const void *x, const Reduction &r, cudaStream_t stream) {
    argmax_kernel<<<static_cast<unsigned>(std::min(r.outputs, MAX_GRID)), BLOCK, 0, stream>>>(
        out, static_cast<const T *>(x), r.kept, r.terms, r.outputs, r.count);
    check_launch("argmax_kernel");
}

} // namespace

void argmax_launch(DType dtype, int64_t *out, const void *x, const Reduction &r, cudaStream_t stream) {
    switch (dtype) {
    case DType::float32:
        return launch<float>(out, x, r, stream);
    case DType::float64:
        return launch<double>(out, x, r, stream);
    case DType::int32:
        return launch<int32_t>(out, x, r, stream);
    case DType::int64:
        return launch<int64_t>(out, x, r, stream);
    case DType::uint8:
    case DType::boolean:
        return launch<uint8_t>(out, x, r, stream);
    }
}

} // namespace gradcuda
