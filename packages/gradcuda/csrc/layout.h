// Layout: how one loop over an output's elements finds its operands, for broadcasting, permuting and slicing.
//
// The host turns shapes into strides (0 where an operand is stretched), drops axes of one and joins axes that lie
// one after the other in every operand, so most loops end with one or two axes. Kernels divide an index by the sizes.
#pragma once

#include "array.h"

namespace gradcuda {

constexpr int MAX_OPERANDS = 3;

struct Layout {
    int ndim = 0;
    bool is_small = true; // fewer than 2^32 elements
    int64_t size[MAX_DIMS] = {};
    int64_t stride[MAX_OPERANDS][MAX_DIMS] = {}; // elements
};

struct Strides {
    int64_t of[MAX_DIMS] = {};
    int64_t &operator[](int axis) { return of[axis]; }
    int64_t operator[](int axis) const { return of[axis]; }
};

Strides contiguous_strides(const Shape &shape);

// Strides with which an array of `shape` is read along `out`, aligned at the last axis. Throws ShapeError.
Strides broadcast_strides(const char *operation, const Shape &shape, const Shape &out);

// The shape that operands broadcast to. Throws ShapeError.
Shape broadcast_shapes(const char *operation, std::initializer_list<const Shape *> shapes);

// Axes of one dropped, neighbours joined. A loop over nothing keeps one axis of size 0.
Layout make_layout(const Shape &shape, std::initializer_list<Strides> operands);

#ifdef __CUDACC__

template <int K, typename Index> __device__ void split_index(const Layout &layout, Index index, int64_t (&offset)[K]) {
    for (int axis = layout.ndim - 1; axis > 0; --axis) {
        const Index size = static_cast<Index>(layout.size[axis]);
        const Index rest = index / size, here = index - rest * size;
        for (int k = 0; k < K; ++k)
            offset[k] += static_cast<int64_t>(here) * layout.stride[k][axis];
        index = rest;
    }
    for (int k = 0; k < K; ++k)
        offset[k] += static_cast<int64_t>(index) * layout.stride[k][0];
}

// Where element `index` of the loop lies in each of K operands. Divides in 32 bits where it can: far cheaper.
template <int K> __device__ void find_offsets(const Layout &layout, int64_t index, int64_t (&offset)[K]) {
    for (int k = 0; k < K; ++k)
        offset[k] = 0;
    if (layout.is_small)
        split_index<K, uint32_t>(layout, static_cast<uint32_t>(index), offset);
    else
        split_index<K, int64_t>(layout, index, offset);
}

#endif

} // namespace gradcuda
