// take, the rows of a batch, and the gradient of take. Indices that do not exist are reported, never followed.
#include "common.cuh"
#include "shape.h"

#include <algorithm>

namespace gradcuda {

// ---------------------------------------------------------------- kernels

namespace {

// Index number j; -1, and a report, if it is not one of 0..length-1 or lies behind the end of the indices.
__device__ int64_t checked_index(const TakeIndices &indices, int64_t j, int64_t length, ErrorWord error) {
    IndexedOperation operation = TAKE;
    if (indices.cursor != nullptr) {
        operation = TAKE_BATCH;
        j += *indices.cursor;
        if (j < 0 || j >= indices.available) {
            report_bad_index(error, operation, j, indices.available);
            return -1;
        }
    }
    const int64_t index =
        indices.wide ? static_cast<const int64_t *>(indices.data)[j] : static_cast<const int32_t *>(indices.data)[j];
    if (index >= 0 && index < length)
        return index;
    report_bad_index(error, operation, index, length);
    return -1;
}

// out (outer, picks, inner), x (outer, length, inner). One thread an item of out, grid-stride.
template <typename Bits>
__global__ void take_kernel(Bits *out, const Bits *x, TakeIndices indices, TakeShape s, Bits nan, ErrorWord error) {
    const int64_t n = s.outer * s.picks * s.inner;
    for (int64_t i = first_index(); i < n; i += index_stride()) {
        const int64_t row = i / s.inner, o = row / s.picks;
        const int64_t index = checked_index(indices, row - o * s.picks, s.length, error);
        out[i] = index < 0 ? nan : x[(o * s.length + index) * s.inner + (i - row * s.inner)];
    }
}

// out (outer, length, inner), grad (outer, picks, inner). One warp a row and 32 of its entries: the lanes read 32
// indices at once and vote; for each hit, in order, all lanes add that row of grad. Grid-stride over the tasks.
template <typename T>
__global__ void take_backward_rows_kernel(T *out, const T *grad, TakeIndices indices, TakeShape s) {
    const int lane = threadIdx.x % WARP;
    const int64_t tiles = ceil_div<int64_t>(s.inner, WARP), tasks = s.outer * s.length * tiles;
    for (int64_t task = first_index() / WARP; task < tasks; task += index_stride() / WARP) {
        const int64_t row = task / tiles, column = (task - row * tiles) * WARP + lane;
        const int64_t o = row / s.length, wanted = row - o * s.length;
        double sum = 0.0;
        for (int64_t first = 0; first < s.picks; first += WARP) {
            const int64_t j = first + lane;
            bool hit = false;
            if (j < s.picks)
                hit = wanted == (indices.wide ? static_cast<const int64_t *>(indices.data)[j]
                                              : static_cast<const int32_t *>(indices.data)[j]);
            for (unsigned hits = __ballot_sync(0xffffffffu, hit); hits != 0; hits &= hits - 1) {
                const int64_t pick = first + __ffs(static_cast<int>(hits)) - 1;
                if (column < s.inner)
                    sum += static_cast<double>(grad[(o * s.picks + pick) * s.inner + column]);
            }
        }
        if (column < s.inner)
            out[row * s.inner + column] = static_cast<T>(sum);
    }
}

// The same for short rows. One thread an entry of out, which goes through all indices; grid-stride.
template <typename T>
__global__ void take_backward_entries_kernel(T *out, const T *grad, TakeIndices indices, TakeShape s) {
    const int64_t n = s.outer * s.length * s.inner;
    for (int64_t i = first_index(); i < n; i += index_stride()) {
        const int64_t row = i / s.inner, column = i - row * s.inner, o = row / s.length, wanted = row - o * s.length;
        double sum = 0.0;
        for (int64_t j = 0; j < s.picks; ++j) {
            const int64_t index = indices.wide ? static_cast<const int64_t *>(indices.data)[j]
                                               : static_cast<const int32_t *>(indices.data)[j];
            if (index == wanted)
                sum += static_cast<double>(grad[(o * s.picks + j) * s.inner + column]);
        }
        out[i] = static_cast<T>(sum);
    }
}

// One thread an index: reports those that do not exist.
__global__ void check_indices_kernel(TakeIndices indices, int64_t picks, int64_t length, ErrorWord error) {
    for (int64_t j = first_index(); j < picks; j += index_stride())
        checked_index(indices, j, length, error);
}

// ---------------------------------------------------------------- launchers

template <typename Bits>
void launch_take(void *out, const void *x, const TakeIndices &indices, TakeShape shape, Bits nan, ErrorWord error,
                 cudaStream_t stream) {
    const int64_t n = shape.outer * shape.picks * shape.inner;
    take_kernel<<<grid_for(n), BLOCK, 0, stream>>>(static_cast<Bits *>(out), static_cast<const Bits *>(x), indices,
                                                   shape, nan, error);
    check_launch("take_kernel");
}

template <typename T>
void launch_backward(void *out, const void *grad, const TakeIndices &indices, TakeShape shape, cudaStream_t stream) {
    T *to = static_cast<T *>(out);
    const T *from = static_cast<const T *>(grad);
    if (shape.inner >= WARP / 4) {
        const int64_t warps = shape.outer * shape.length * ceil_div<int64_t>(shape.inner, WARP);
        take_backward_rows_kernel<<<grid_for(warps, BLOCK / WARP), BLOCK, 0, stream>>>(to, from, indices, shape);
        check_launch("take_backward_rows_kernel");
    } else {
        const int64_t n = shape.outer * shape.length * shape.inner;
        take_backward_entries_kernel<<<grid_for(n), BLOCK, 0, stream>>>(to, from, indices, shape);
        check_launch("take_backward_entries_kernel");
    }
}

} // namespace

void take_launch(size_t item, void *out, const void *x, TakeIndices indices, TakeShape shape, uint64_t nan,
                 ErrorWord error, cudaStream_t stream) {
    if (item == 4 && shape.inner % 4 == 0 && is_aligned(x, sizeof(uint4)) && is_aligned(out, sizeof(uint4))) {
        const uint32_t bits = static_cast<uint32_t>(nan); // rows of whole 16-byte words
        shape.inner /= 4;
        launch_take<uint4>(out, x, indices, shape, make_uint4(bits, bits, bits, bits), error, stream);
    } else if (item == 8)
        launch_take<uint64_t>(out, x, indices, shape, nan, error, stream);
    else if (item == 4)
        launch_take<uint32_t>(out, x, indices, shape, static_cast<uint32_t>(nan), error, stream);
    else
        launch_take<uint8_t>(out, x, indices, shape, static_cast<uint8_t>(nan), error, stream);
}

void take_backward_launch(DType dtype, void *out, const void *grad, TakeIndices indices, TakeShape shape,
                          ErrorWord error, cudaStream_t stream) {
    if (shape.picks > 0) {
        check_indices_kernel<<<grid_for(shape.picks), BLOCK, 0, stream>>>(indices, shape.picks, shape.length, error);
        check_launch("check_indices_kernel");
    }
    if (dtype == DType::float32)
        launch_backward<float>(out, grad, indices, shape, stream);
    else
        launch_backward<double>(out, grad, indices, shape, stream);
}

} // namespace gradcuda
