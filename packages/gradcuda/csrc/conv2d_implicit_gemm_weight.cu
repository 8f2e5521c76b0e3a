// conv2d_implicit_gemm_weight.cu: the weight's gradient as a tiled product, with a split sum.
//
// dw[o, (c, kh, kw)] = sum over k = (n, i, j) of grad[n, o, i, j] * x[n, c, the window of (i, j) at (kh, kw)]: a small
// matrix and a very long inner axis. So the axis is cut into parts, each block sums one part into `partials`, and a
// second kernel adds the parts up in a fixed order: no atomics, the same bits at every run and on every GPU.
// Read first: conv2d_implicit_gemm.cu.
#include "common.cuh"
#include "conv2d.h"
#include "conv2d_problem.cuh"
#include "gemm_tile.cuh"

#include <algorithm>

namespace gradcuda {
namespace {

template <class T> struct WeightProblem {
    const T *grad, *x;
    T *out; // (parts, O, C/groups * KH * KW)
    Conv2dShape s;
    FastDivide taps, kernel_width, plane, width;
    int64_t part; // terms in one part
    int parts;

    __host__ __device__ int rows() const { return s.o / s.groups; }
    __host__ __device__ int columns() const { return s.c / s.groups * s.kh * s.kw; }
    __host__ __device__ int64_t depth() const { return s.n * s.oh * s.ow; }
};

// ------------------------------------------------------------------------------------------------ kernels

// One block owns BM x BN entries of one group's (O/groups, C/groups*KH*KW) product over one part of the inner axis.
// Neighbouring threads fetch neighbouring k, that is, neighbouring pixels of grad and of x.
template <class Tile, class T>
__global__ void __launch_bounds__(Tile::THREADS)
    implicit_gemm_weight_kernel(const WeightProblem<T> p, int row_tiles, int column_tiles) {
    constexpr int STEP = Tile::THREADS / Tile::BK, LEFT = Tile::BM / STEP, RIGHT = Tile::BN / STEP;
    static_assert(Tile::BM % STEP == 0 && Tile::BN % STEP == 0, "every thread fetches as many entries");
    __shared__ SharedTiles<Tile> shared;
    __shared__ Tap tap[Tile::BN]; // what a column (c, kh, kw) adds to a window's corner

    const Conv2dShape &s = p.s;
    const int rows = p.rows(), columns = p.columns(), out_plane = s.oh * s.ow;
    unsigned rest = blockIdx.x;
    const int row0 = static_cast<int>(rest % row_tiles) * Tile::BM;
    rest /= row_tiles;
    const int column0 = static_cast<int>(rest % column_tiles) * Tile::BN;
    rest /= column_tiles;
    const int group = static_cast<int>(rest % s.groups), index = static_cast<int>(rest / s.groups);
    const int64_t begin = index * p.part;
    const int count = static_cast<int>(max(int64_t{0}, min(p.part, p.depth() - begin)));

    for (int i = threadIdx.x; i < Tile::BN; i += Tile::THREADS) {
        int l = min(column0 + i, columns - 1);
        const int c = p.taps.split(l), k = p.kernel_width.split(l);
        tap[i] = {(int64_t{group} * (s.c / s.groups) + c) * (s.h * s.w), k * s.dilation_h, l * s.dilation_w};
    }
    __syncthreads();

    Pixel corner;
    corner.n = split_wide(min(begin, p.depth()), p.plane, corner.p);
    const int my_k = threadIdx.x % Tile::BK, first = threadIdx.x / Tile::BK;
    T left[LEFT], right[RIGHT];

    const auto fetch = [&](int k0) {
        const bool inside = k0 + my_k < count;
        const Pixel at = advance(corner, inside ? k0 + my_k : 0, p.plane);
        const T *grad = p.grad + (at.n * s.o + int64_t{group} * rows) * out_plane + at.p;
#pragma unroll
        for (int i = 0; i < LEFT; i++) {
            const int row = row0 + first + i * STEP;
            left[i] = inside && row < rows ? grad[int64_t{row} * out_plane] : T(0);
        }
        int j_out = at.p;
        const int i_out = p.width.split(j_out);
        const int h0 = i_out * s.stride_h - s.pad_h, w0 = j_out * s.stride_w - s.pad_w;
        const T *image = p.x + at.n * s.c * (s.h * s.w);
#pragma unroll
        for (int i = 0; i < RIGHT; i++) {
            const Tap &move = tap[first + i * STEP];
            const int h = h0 + move.h, w = w0 + move.w;
            const bool seen = inside && static_cast<unsigned>(h) < static_cast<unsigned>(s.h) &&
                              static_cast<unsigned>(w) < static_cast<unsigned>(s.w) &&
                              column0 + first + i * STEP < columns;
            right[i] = seen ? image[move.offset + (h * s.w + w)] : T(0);
        }
    };
    const auto place = [&](int buffer) {
#pragma unroll
        for (int i = 0; i < LEFT; i++)
            shared.a[buffer][my_k][first + i * STEP] = Tile::prepare(left[i]);
#pragma unroll
        for (int i = 0; i < RIGHT; i++)
            shared.b[buffer][my_k][first + i * STEP] = Tile::prepare(right[i]);
    };

    Tile tile;
    fetch(0);
    place(0);
    __syncthreads();
    for (int k0 = 0, buffer = 0; k0 < count; k0 += Tile::BK, buffer ^= 1) {
        const bool more = k0 + Tile::BK < count;
        if (more)
            fetch(k0 + Tile::BK);
        tile.multiply(shared.a[buffer], shared.b[buffer]);
        if (more)
            place(buffer ^ 1);
        __syncthreads();
    }

    T *out = p.out + (int64_t{index} * s.o + int64_t{group} * rows) * columns;
    const auto same = [&](int column) { return column0 + column; };
    tile.store(same, [&](int column, int tile_row, const T(&values)[Tile::GROUP]) {
        const int row = row0 + tile_row;
#pragma unroll
        for (int q = 0; q < Tile::GROUP; q++)
            if (row < rows && column + q < columns)
                out[int64_t{row} * columns + column + q] = values[q];
    });
}

// out[i] = sum over the parts of partials[part, i]. A block owns 32 entries; its 8 warps take every eighth part each,
// in order, and the eight sums are added in order.
template <class T>
__global__ void sum_parts_kernel(T *__restrict__ out, const T *__restrict__ partials, int64_t size, int parts) {
    __shared__ double sums[8][33];
    const int64_t i = int64_t{blockIdx.x} * 32 + threadIdx.x;
    double sum = 0.0;
    if (i < size)
#pragma unroll 4
        for (int part = threadIdx.y; part < parts; part += 8)
            sum += partials[part * size + i];
    sums[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y == 0 && i < size) {
        for (int y = 1; y < 8; y++)
            sum += sums[y][threadIdx.x];
        out[i] = static_cast<T>(sum);
    }
}

// ------------------------------------------------------------------------------------------------ launchers

struct Plan {
    int bm, bn; // the tile
    int row_tiles, column_tiles, parts;
    int64_t part;
};

// Tile by the number of rows. Parts so many that some 264 blocks run (two on each of an H100's 132 multiprocessors,
// whatever the GPU is, so that its bits are the same everywhere), but none shorter than 128 terms.
Plan plan(const Conv2dShape &s, bool single) {
    Plan p{};
    const int rows = s.group_o(), columns = s.group_c() * s.taps();
    p.bm = rows > 64 && columns > 64 && single ? 128 : rows > 32 && single ? 64 : rows > 16 ? 32 : 16;
    p.bn = p.bm == 128 ? 128 : 64;
    p.row_tiles = (rows + p.bm - 1) / p.bm;
    p.column_tiles = (columns + p.bn - 1) / p.bn;
    const int64_t depth = s.n * s.out_plane(), tiles = int64_t{p.row_tiles} * p.column_tiles * s.groups;
    int64_t parts = std::min((264 + tiles - 1) / tiles, (depth + 127) / 128);
    parts = std::max({parts, int64_t{1}, (depth >> 29) + 1});
    p.part = ((depth + parts - 1) / parts + 15) / 16 * 16; // whole steps
    p.parts = depth == 0 ? 1 : static_cast<int>((depth + p.part - 1) / p.part);
    return p;
}

template <class Tile, class T> void launch(const WeightProblem<T> &problem, const Plan &p, cudaStream_t stream) {
    const int64_t blocks = int64_t{p.row_tiles} * p.column_tiles * problem.s.groups * p.parts;
    implicit_gemm_weight_kernel<Tile, T>
        <<<exact_grid(blocks), Tile::THREADS, 0, stream>>>(problem, p.row_tiles, p.column_tiles);
    check_launch("conv2d implicit_gemm_weight_kernel");
}

} // namespace

template <class T> size_t conv2d_implicit_gemm_backward_weight_scratch(const Conv2dShape &s) {
    const int parts = plan(s, sizeof(T) == 4).parts;
    return parts > 1 ? parts * s.weight_size() * sizeof(T) : 0;
}

template <class T>
void conv2d_implicit_gemm_backward_weight(T *dw, const T *grad, const T *x, const Conv2dShape &s, bool tf32,
                                          void *scratch, cudaStream_t stream) {
    const Plan p = plan(s, sizeof(T) == 4);
    const int64_t size = s.weight_size();
    T *out = p.parts > 1 ? static_cast<T *>(scratch) : dw;
    const WeightProblem<T> problem{
        grad,   x,      out, s, FastDivide(s.taps()), FastDivide(s.kw), FastDivide(s.out_plane()), FastDivide(s.ow),
        p.part, p.parts};
    const bool mma = tf32 && sizeof(T) == 4; // float64 stays float64 when TF32 is allowed
    if constexpr (sizeof(T) == 4) {
        if (mma)
            p.bm == 128  ? launch<MmaTile<128, 128, 64, 32>>(problem, p, stream)
            : p.bm == 64 ? launch<MmaTile<64, 64, 32, 32>>(problem, p, stream)
            : p.bm == 32 ? launch<MmaTile<32, 64, 16, 16>>(problem, p, stream)
                         : launch<MmaTile<16, 64, 16, 16>>(problem, p, stream);
        else if (p.bm == 128)
            launch<FmaTile<float, 128, 128, 8, 8, 8>>(problem, p, stream);
        else if (p.bm == 64)
            launch<FmaTile<float, 64, 64, 16, 4, 4>>(problem, p, stream);
    }
    if (!mma && p.bm == 32)
        launch<FmaTile<T, 32, 64, 16, 2, 4>>(problem, p, stream);
    else if (!mma && p.bm == 16)
        launch<FmaTile<T, 16, 64, 16, 2, 4>>(problem, p, stream);
    if (p.parts > 1) {
        sum_parts_kernel<T><<<exact_grid((size + 31) / 32), dim3(32, 8), 0, stream>>>(dw, out, size, p.parts);
        check_launch("conv2d sum_parts_kernel");
    }
}

#define INSTANTIATE(T)                                                                                                 \
    template size_t conv2d_implicit_gemm_backward_weight_scratch<T>(const Conv2dShape &);                              \
    template void conv2d_implicit_gemm_backward_weight(T *, const T *, const T *, const Conv2dShape &, bool, void *,   \
                                                       cudaStream_t);
INSTANTIATE(float)
INSTANTIATE(double)
#undef INSTANTIATE

} // namespace gradcuda
