// Moving items: permuting, broadcasting and slicing (gather), their reverse (place), fill, copy, append.
#include "common.cuh"
#include "shape.h"

namespace gradcuda {

// ---------------------------------------------------------------- kernels

namespace {

// out (n,), x along the layout. One thread an item of out, grid-stride.
template <typename Bits> __global__ void gather_kernel(Bits *out, const Bits *x, Layout layout, int64_t n) {
    for (int64_t i = first_index(); i < n; i += index_stride()) {
        int64_t offset[1];
        find_offsets(layout, i, offset);
        out[i] = x[offset[0]];
    }
}

// out along the layout, x (n,). One thread an item of x, grid-stride; no item of out has two.
template <typename Bits> __global__ void place_kernel(Bits *out, const Bits *x, Layout layout, int64_t n) {
    for (int64_t i = first_index(); i < n; i += index_stride()) {
        int64_t offset[1];
        find_offsets(layout, i, offset);
        out[offset[0]] = x[i];
    }
}

template <typename Bits> __global__ void fill_kernel(Bits *out, Bits bits, int64_t n) {
    for (int64_t i = first_index(); i < n; i += index_stride())
        out[i] = bits;
}

template <typename Bits> __global__ void copy_kernel(Bits *out, const Bits *x, int64_t n) {
    for (int64_t i = first_index(); i < n; i += index_stride())
        out[i] = x[i];
}

// One thread in all.
template <typename Bits>
__global__ void append_kernel(Bits *buffer, const Bits *value, int64_t *cursor, int64_t length) {
    const int64_t at = *cursor;
    if (at >= 0 && at < length) {
        buffer[at] = *value;
        *cursor = at + 1;
    }
}

// ---------------------------------------------------------------- launchers

// Calls f(Bits()) for items of 1, 4 or 8 bytes.
template <typename F> void with_bits(size_t item, F &&f) {
    if (item == 8)
        f(uint64_t());
    else if (item == 4)
        f(uint32_t());
    else
        f(uint8_t());
}

} // namespace

void gather_launch(size_t item, void *out, const void *x, const Layout &layout, int64_t start, int64_t n,
                   cudaStream_t stream) {
    with_bits(item, [&](auto bits) {
        using Bits = decltype(bits);
        gather_kernel<<<grid_for(n), BLOCK, 0, stream>>>(static_cast<Bits *>(out), static_cast<const Bits *>(x) + start,
                                                         layout, n);
    });
    check_launch("gather_kernel");
}

void place_launch(size_t item, void *out, const void *x, const Layout &layout, int64_t start, int64_t n,
                  cudaStream_t stream) {
    with_bits(item, [&](auto bits) {
        using Bits = decltype(bits);
        place_kernel<<<grid_for(n), BLOCK, 0, stream>>>(static_cast<Bits *>(out) + start, static_cast<const Bits *>(x),
                                                        layout, n);
    });
    check_launch("place_kernel");
}

void fill_launch(size_t item, void *out, uint64_t bits, int64_t n, cudaStream_t stream) {
    with_bits(item, [&](auto kind) {
        using Bits = decltype(kind);
        fill_kernel<<<grid_for(n), BLOCK, 0, stream>>>(static_cast<Bits *>(out), static_cast<Bits>(bits), n);
    });
    check_launch("fill_kernel");
}

void copy_launch(void *out, const void *x, int64_t bytes, cudaStream_t stream) {
    if (bytes % sizeof(uint4) == 0 && is_aligned(out, sizeof(uint4)) && is_aligned(x, sizeof(uint4))) {
        const int64_t n = bytes / sizeof(uint4);
        copy_kernel<<<grid_for(n), BLOCK, 0, stream>>>(static_cast<uint4 *>(out), static_cast<const uint4 *>(x), n);
    } else if (bytes % 4 == 0 && is_aligned(out, 4) && is_aligned(x, 4)) {
        const int64_t n = bytes / 4;
        copy_kernel<<<grid_for(n), BLOCK, 0, stream>>>(static_cast<uint32_t *>(out), static_cast<const uint32_t *>(x),
                                                       n);
    } else {
        copy_kernel<<<grid_for(bytes), BLOCK, 0, stream>>>(static_cast<uint8_t *>(out), static_cast<const uint8_t *>(x),
                                                           bytes);
    }
    check_launch("copy_kernel");
}

void append_launch(size_t item, void *buffer, const void *value, int64_t *cursor, int64_t length, cudaStream_t stream) {
    with_bits(item, [&](auto bits) {
        using Bits = decltype(bits);
        append_kernel<<<1, 1, 0, stream>>>(static_cast<Bits *>(buffer), static_cast<const Bits *>(value), cursor,
                                           length);
    });
    check_launch("append_kernel");
}

} // namespace gradcuda
