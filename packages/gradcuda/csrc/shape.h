// Launchers of shape.cu, convert.cu and indexing.cu. Items of 1, 4 or 8 bytes are moved as bits.
#pragma once

#include "layout.h"

namespace gradcuda {

// shape.cu
// out (n,) contiguous = x read along the layout from element `start`.
void gather_launch(size_t item, void *out, const void *x, const Layout &layout, int64_t start, int64_t n,
                   cudaStream_t stream);
// The reverse: out along the layout = x (n,) contiguous. Elements of out that the layout misses stay.
void place_launch(size_t item, void *out, const void *x, const Layout &layout, int64_t start, int64_t n,
                  cudaStream_t stream);
// out (n,) = the item whose bits are given.
void fill_launch(size_t item, void *out, uint64_t bits, int64_t n, cudaStream_t stream);
// out = x, so many bytes.
void copy_launch(void *out, const void *x, int64_t bytes, cudaStream_t stream);
// buffer[cursor] = value, an item each, and cursor += 1; nothing where cursor is outside 0..length-1.
void append_launch(size_t item, void *buffer, const void *value, int64_t *cursor, int64_t length, cudaStream_t stream);

// convert.cu
void astype_launch(DType to, void *out, DType from, const void *x, int64_t n, cudaStream_t stream);
// float32 (n,) in [0, 1): Philox4x32-10 under `key` from block counter[0] on; then counter[0] += ceil(n / 4).
void random_uniform_launch(float *out, int64_t *counter, uint64_t key, int64_t n, cudaStream_t stream);

// indexing.cu: x (outer, length, inner), indices (picks,) int32 or int64, out (outer, picks, inner), in items.
struct TakeShape {
    int64_t outer, length, picks, inner;
};
// cursor null: indices as they are. Else indices[cursor[0] + j], of which there are `available`. What does not exist
// gives items of bits `nan` and a report.
struct TakeIndices {
    const void *data;
    bool wide; // int64
    const int64_t *cursor = nullptr;
    int64_t available = 0;
};
void take_launch(size_t item, void *out, const void *x, TakeIndices indices, TakeShape shape, uint64_t nan,
                 ErrorWord error, cudaStream_t stream);
// out (outer, length, inner) = for each row, the sum of grad (outer, picks, inner) over the picks that took it, in
// their order. Float types.
void take_backward_launch(DType dtype, void *out, const void *grad, TakeIndices indices, TakeShape shape,
                          ErrorWord error, cudaStream_t stream);

} // namespace gradcuda
