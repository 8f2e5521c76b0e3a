// conv2d_implicit_gemm.cu: the tiled convolution, forward and the input's gradient (PMPP chapters 5 and 16).
//
// The unrolled matrix of conv2d_unroll.cu is never written: a block fetches the entries that its tile needs straight
// from x, step by step along k, and multiplies them out of shared memory. The next step is on its way from global
// memory while the present one is multiplied. Any stride, padding, dilation and groups.
// Read first: gemm_tile.cuh, conv2d_problem.cuh. Next: conv2d_implicit_gemm_weight.cu.
#include "common.cuh"
#include "conv2d.h"
#include "conv2d_problem.cuh"
#include "gemm_tile.cuh"

namespace gradcuda {
namespace {

// ------------------------------------------------------------------------------------------------ kernels

// product (rows, columns) of one group = left (rows, depth) @ right (depth, columns), as the problem defines them.
// One block owns BM x BN entries; tiles of one pixel range follow each other, so that x is fetched from L2 once.
template <class Tile, class Problem>
__global__ void __launch_bounds__(Tile::THREADS, Tile::THREADS == 256 ? 2 : 1)
    implicit_gemm_kernel(const Problem problem, int row_tiles, int64_t column_tiles, int plane, bool packed) {
    using T = typename Tile::Value;
    constexpr int LEFT = (Tile::BM * Tile::BK + Tile::THREADS - 1) / Tile::THREADS;
    constexpr int RIGHT_STEP = Tile::THREADS / Tile::BN, RIGHT = Tile::BK / RIGHT_STEP;
    static_assert(Tile::THREADS % Tile::BN == 0 && Tile::BK % RIGHT_STEP == 0, "a thread keeps its column");
    static_assert(Tile::BM * Tile::BK % Tile::THREADS == 0, "every thread fetches as many entries");
    __shared__ SharedTiles<Tile> shared;
    __shared__ Tap taps[2][Tile::BK]; // of the step being fetched, and of the one after it
    __shared__ int64_t left_offsets[2][Tile::BK];

    const int64_t tile_index = blockIdx.x / row_tiles;
    const int group = static_cast<int>(tile_index / column_tiles);
    const int row0 = static_cast<int>(blockIdx.x % row_tiles) * Tile::BM;
    const int64_t column0 = (tile_index - group * column_tiles) * Tile::BN;
    const int depth = problem.depth(), rows = problem.rows();
    const int columns = static_cast<int>(min(int64_t{Tile::BN}, problem.columns() - column0)); // of this tile
    Pixel corner;
    corner.n = split_wide(column0, problem.plane, corner.p);

    const int column = threadIdx.x % Tile::BN, first_k = threadIdx.x / Tile::BN;
    const bool inside = column < columns;
    const typename Problem::Column at = problem.column(group, inside ? advance(corner, column, problem.plane) : corner);
    T left[LEFT], right[RIGHT];

    const auto look_ahead = [&](int k0, int buffer) {
        const int k = k0 + threadIdx.x;
        if (threadIdx.x < Tile::BK && k < depth) {
            taps[buffer][threadIdx.x] = problem.tap(k);
            left_offsets[buffer][threadIdx.x] = problem.left_offset(group, k);
        }
    };
    const auto fetch = [&](int k0, int buffer) {
#pragma unroll
        for (int i = 0; i < LEFT; i++) { // neighbouring threads read neighbouring k: a weight's row is contiguous
            const int entry = threadIdx.x + i * Tile::THREADS;
            const int k = entry % Tile::BK, row = row0 + entry / Tile::BK;
            left[i] = k0 + k < depth && row < rows
                          ? problem.weight[row * problem.left_stride() + left_offsets[buffer][k]]
                          : T(0);
        }
#pragma unroll
        for (int i = 0; i < RIGHT; i++) {
            const int k = first_k + i * RIGHT_STEP;
            right[i] = inside && k0 + k < depth ? problem.right(at, taps[buffer][k]) : T(0);
        }
    };
    const auto place = [&](int buffer) {
#pragma unroll
        for (int i = 0; i < LEFT; i++) {
            const int entry = threadIdx.x + i * Tile::THREADS;
            shared.a[buffer][entry % Tile::BK][entry / Tile::BK] = Tile::prepare(left[i]);
        }
#pragma unroll
        for (int i = 0; i < RIGHT; i++)
            shared.b[buffer][first_k + i * RIGHT_STEP][column] = Tile::prepare(right[i]);
    };

    Tile tile;
    look_ahead(0, 0);
    look_ahead(Tile::BK, 1);
    __syncthreads();
    fetch(0, 0);
    place(0);
    __syncthreads();
    for (int k0 = 0, buffer = 0; k0 < depth; k0 += Tile::BK, buffer ^= 1) {
        const bool more = k0 + Tile::BK < depth;
        if (more)
            fetch(k0 + Tile::BK, buffer ^ 1);
        tile.multiply(shared.a[buffer], shared.b[buffer]);
        if (more)
            place(buffer ^ 1); // last read one step ago, before the barrier below; so were this buffer's taps
        look_ahead(k0 + 2 * Tile::BK, buffer);
        __syncthreads();
    }

    const auto begin = [&](int first) { return first; };
    tile.store(begin, [&](int first, int row, const T(&values)[Tile::GROUP]) {
        if (row0 + row >= rows)
            return;
        const int64_t offset = int64_t{row0 + row} * plane;
        if (packed && first < columns) { // plane % GROUP == 0: the group lies in one image, aligned
            Pack<T, Tile::GROUP> pack;
#pragma unroll
            for (int q = 0; q < Tile::GROUP; q++)
                pack.v[q] = problem.finish(group, row0 + row, values[q]);
            *reinterpret_cast<Pack<T, Tile::GROUP> *>(problem.out(group, advance(corner, first, problem.plane)) +
                                                      offset) = pack;
        } else {
#pragma unroll
            for (int q = 0; q < Tile::GROUP; q++)
                if (first + q < columns)
                    problem.out(group, advance(corner, first + q, problem.plane))[offset] =
                        problem.finish(group, row0 + row, values[q]);
        }
    });
}

// ------------------------------------------------------------------------------------------------ launchers

template <class Tile, class Problem>
void launch(const Problem &problem, const char *name, int64_t plane, cudaStream_t stream) {
    const int row_tiles = (problem.rows() + Tile::BM - 1) / Tile::BM;
    const int64_t column_tiles = (problem.columns() + Tile::BN - 1) / Tile::BN;
    const int64_t blocks = row_tiles * column_tiles * problem.s.groups;
    implicit_gemm_kernel<Tile, Problem><<<exact_grid(blocks), Tile::THREADS, 0, stream>>>(
        problem, row_tiles, column_tiles, static_cast<int>(plane), plane % Tile::GROUP == 0);
    check_launch(name);
}

// The tile by the number of rows (channels that come out): wide enough not to compute rows that do not exist, and the
// largest only where it fills the machine. All of one arithmetic give the same bits, so this is a matter of speed.
template <class Problem> void run(const Problem &problem, bool tf32, const char *name, int64_t plane, cudaStream_t s) {
    using T = std::remove_cv_t<std::remove_reference_t<decltype(*problem.weight)>>;
    const int rows = problem.rows();
    if (problem.columns() == 0)
        return;
    const int64_t large = int64_t{(rows + 127) / 128} * ((problem.columns() + 127) / 128) * problem.s.groups;
    const bool fills = rows > 64 && large >= 128;
    if constexpr (std::is_same_v<T, float>) {
        if (tf32) {
            if (fills)
                launch<MmaTile<128, 128, 64, 32>>(problem, name, plane, s);
            else if (rows > 32)
                launch<MmaTile<64, 64, 32, 32>>(problem, name, plane, s);
            else if (rows > 16)
                launch<MmaTile<32, 64, 16, 16>>(problem, name, plane, s);
            else
                launch<MmaTile<16, 64, 16, 16>>(problem, name, plane, s);
            return;
        }
        if (fills)
            return launch<FmaTile<float, 128, 128, 8, 8, 8>>(problem, name, plane, s);
        if (rows > 32)
            return launch<FmaTile<float, 64, 64, 16, 4, 4>>(problem, name, plane, s);
    }
    if (rows > 16)
        launch<FmaTile<T, 32, 64, 16, 2, 4>>(problem, name, plane, s);
    else
        launch<FmaTile<T, 16, 64, 16, 2, 4>>(problem, name, plane, s);
}

} // namespace

template <class T>
void conv2d_implicit_gemm_forward(T *y, const T *x, const T *weight, const T *bias, const Conv2dShape &s, bool tf32,
                                  cudaStream_t stream) {
    run(ForwardProblem<T>(x, weight, bias, y, s), tf32, "conv2d implicit_gemm_kernel (forward)", s.out_plane(), stream);
}

template <class T>
void conv2d_implicit_gemm_backward_input(T *dx, const T *grad, const T *weight, const Conv2dShape &s, bool tf32,
                                         cudaStream_t stream) {
    run(BackwardInputProblem<T>(grad, weight, dx, s), tf32, "conv2d implicit_gemm_kernel (backward_input)", s.plane(),
        stream);
}

#define INSTANTIATE(T)                                                                                                 \
    template void conv2d_implicit_gemm_forward(T *, const T *, const T *, const T *, const Conv2dShape &, bool,        \
                                               cudaStream_t);                                                          \
    template void conv2d_implicit_gemm_backward_input(T *, const T *, const T *, const Conv2dShape &, bool,            \
                                                      cudaStream_t);
INSTANTIATE(float)
INSTANTIATE(double)
#undef INSTANTIATE

} // namespace gradcuda
