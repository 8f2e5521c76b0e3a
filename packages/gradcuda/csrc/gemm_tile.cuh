// gemm_tile.cuh: one block's share of a matrix product, the part that the tiled convolutions have in common.
//
// A block owns BM rows and BN columns of C = A @ B and walks along the inner axis in steps of BK. Each step lies in
// shared memory as a[k][m] and b[k][n]; a tile's `multiply` adds their product to the accumulators that each thread
// keeps in registers. FmaTile does it in plain float32 or float64, MmaTile with TF32 tensor cores.
// Every entry of C is summed in the order of k, one fused multiply-add after the other: FmaTiles of all sizes give
// the same bits. Next: conv2d_implicit_gemm.cu.
#pragma once

#include "mma_tf32.cuh"

namespace gradcuda {

// N neighbouring numbers, moved by one instruction where they fit into 16 bytes.
template <class T, int N> struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) Pack {
    T v[N];
};

// Two buffers: while one is multiplied the next step is stored into the other. The pad spreads a column over the banks.
template <class Tile> struct SharedTiles {
    using T = typename Tile::Value;
    alignas(16) T a[2][Tile::BK][Tile::BM + Tile::PAD];
    alignas(16) T b[2][Tile::BK][Tile::BN + Tile::PAD];
};

// Thread (ty, tx) owns TM x TN entries: groups of ROWS neighbouring rows and of four neighbouring columns, the next
// group ROW_STEP or COLUMN_STEP further. More entries a thread: fewer reads of shared memory; fewer: more threads.
template <class T, int BM_, int BN_, int BK_, int TM, int TN> struct FmaTile {
    using Value = T;
    static constexpr int BM = BM_, BN = BN_, BK = BK_, PAD = 4, THREADS = BM / TM * (BN / TN), GROUP = 4;
    static constexpr int ROWS = TM < 4 ? TM : 4, COLUMN_THREADS = BN / TN;
    static constexpr int ROW_STEP = BM / TM * ROWS, COLUMN_STEP = COLUMN_THREADS * 4;

    T sum[TM][TN] = {};

    static __device__ T prepare(T value) { return value; }
    static __device__ int first_row() { return threadIdx.x / COLUMN_THREADS * ROWS; }
    static __device__ int first_column() { return threadIdx.x % COLUMN_THREADS * 4; }

    __device__ void multiply(const T (*a)[BM + PAD], const T (*b)[BN + PAD]) {
        const int row = first_row(), column = first_column();
#pragma unroll
        for (int k = 0; k < BK; k++) {
            Pack<T, ROWS> left[TM / ROWS];
            Pack<T, 4> right[TN / 4];
#pragma unroll
            for (int i = 0; i < TM / ROWS; i++)
                left[i] = *reinterpret_cast<const Pack<T, ROWS> *>(&a[k][row + i * ROW_STEP]);
#pragma unroll
            for (int j = 0; j < TN / 4; j++)
                right[j] = *reinterpret_cast<const Pack<T, 4> *>(&b[k][column + j * COLUMN_STEP]);
#pragma unroll
            for (int i = 0; i < TM; i++)
#pragma unroll
                for (int j = 0; j < TN; j++)
                    sum[i][j] = fma(left[i / ROWS].v[i % ROWS], right[j / 4].v[j % 4], sum[i][j]);
        }
    }

    // For each group of neighbouring columns, `place = begin(column)`, then put(place, row, values) for each row; rows
    // and columns count from the tile's corner.
    template <class Begin, class Put> __device__ void store(const Begin &begin, const Put &put) const {
#pragma unroll
        for (int j = 0; j < TN; j += 4) {
            const auto place = begin(first_column() + j / 4 * COLUMN_STEP);
#pragma unroll
            for (int i = 0; i < TM; i++) {
                const T values[4] = {sum[i][j], sum[i][j + 1], sum[i][j + 2], sum[i][j + 3]};
                put(place, first_row() + i % ROWS + i / ROWS * ROW_STEP, values);
            }
        }
    }
};

// One warp owns WM x WN entries, as WM/16 x WN/8 tensor-core products.
template <int BM_, int BN_, int WM, int WN> struct MmaTile {
    using Value = float;
    static constexpr int BM = BM_, BN = BN_, BK = 16, PAD = 8, THREADS = BM / WM * (BN / WN) * 32, GROUP = 2;

    float sum[WM / 16][WN / 8][4] = {};

    static __device__ float prepare(float value) { return to_tf32(value); }
    static __device__ int first_row() { return threadIdx.x / 32 / (BN / WN) * WM + threadIdx.x % 32 / 4; }
    static __device__ int warp_column() { return threadIdx.x / 32 % (BN / WN) * WN; }

    __device__ void multiply(const float (*a)[BM + PAD], const float (*b)[BN + PAD]) {
        const int part = threadIdx.x % 4, row = first_row(), column = warp_column() + threadIdx.x % 32 / 4;
#pragma unroll
        for (int k = 0; k < BK; k += 8) {
            float left[WM / 16][4], right[WN / 8][2];
#pragma unroll
            for (int i = 0; i < WM / 16; i++)
#pragma unroll
                for (int q = 0; q < 4; q++)
                    left[i][q] = a[k + part + q / 2 * 4][row + i * 16 + q % 2 * 8];
#pragma unroll
            for (int j = 0; j < WN / 8; j++)
#pragma unroll
                for (int q = 0; q < 2; q++)
                    right[j][q] = b[k + part + q * 4][column + j * 8];
#pragma unroll
            for (int i = 0; i < WM / 16; i++)
#pragma unroll
                for (int j = 0; j < WN / 8; j++)
                    mma_m16n8k8(sum[i][j], left[i], right[j]);
        }
    }

    template <class Begin, class Put> __device__ void store(const Begin &begin, const Put &put) const {
#pragma unroll
        for (int j = 0; j < WN / 8; j++) {
            const auto place = begin(warp_column() + j * 8 + threadIdx.x % 4 * 2);
#pragma unroll
            for (int i = 0; i < WM / 16; i++)
#pragma unroll
                for (int half = 0; half < 2; half++) {
                    const float values[2] = {sum[i][j][2 * half], sum[i][j][2 * half + 1]};
                    put(place, first_row() + i * 16 + half * 8, values);
                }
        }
    }
};

} // namespace gradcuda
