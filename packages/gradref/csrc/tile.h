/* tile.h: the register tiles that every fast convolution kernel is built of.
 *
 * They keep a small block of sums in vector registers while they walk over a long axis: one load feeds many
 * multiply-adds. Plain loops with constant bounds; the compiler turns the lane loops into vector instructions.
 * always_inline, because a helper that is called from a clone and not inlined would run as the plain version.
 * Next: plane.h, the zero-padded layout that makes every tap a plain offset; then correlate.c.
 */
#ifndef GRADREF_TILE_H
#define GRADREF_TILE_H

#include <stdint.h>

#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* Before a loop with few, constant steps. A loop of 16 steps or fewer is unrolled before it could become a vector, so
 * the lane loop needs SIMD, and the loops around it, which hold nothing but registers, UNROLL. */
#define UNROLL _Pragma("GCC unroll 48")
#define SIMD _Pragma("omp simd")

enum {
    LANES = 16,   /* floats of an AVX-512 register; channels of one channels-last block */
    TILE_M = 8,   /* output channels of a tile; also the packing of the weights: [M / 8][tap][8] */
    TILE_L = 48,  /* positions of a tile: 8 x 48 sums are 24 of the 32 AVX-512 registers */
    NARROW_M = 4, /* 4 x 24 sums are twelve of AVX2's sixteen registers */
    NARROW_L = 24,
    TILE_S = 12, /* scalars of an outer product: 12 x 32 sums are again 24 registers */
};

/* The formatter does not know that UNROLL and SIMD belong to the loop that follows. */
/* clang-format off */

/* y[m*ld + l] = start[m] + sum over t of w[t*8 + m] * x[offset[t] + l], for M channels and L positions.
 * M and L must be constants at the call; taps is at least 1. */
ALWAYS_INLINE void tile_correlate(const int M, const int L, float *restrict y, int64_t ld, const float *restrict x,
                                  const int64_t *restrict offset, int64_t taps, const float *restrict w,
                                  const float *restrict start) {
    float acc[TILE_M][TILE_L / LANES][LANES];
    UNROLL for (int m = 0; m < M; m++)
        UNROLL for (int b = 0; b < L / LANES; b++)
            SIMD for (int l = 0; l < LANES; l++)
                acc[m][b][l] = start[m];
    int64_t t = 0;
    do { /* not `for`: a path around the loop would send all sums through memory */
        const float *restrict in = x + offset[t];
        UNROLL for (int m = 0; m < M; m++) {
            const float k = w[t * TILE_M + m];
            UNROLL for (int b = 0; b < L / LANES; b++)
                SIMD for (int l = 0; l < LANES; l++)
                    acc[m][b][l] += k * in[b * LANES + l];
        }
    } while (++t < taps);
    UNROLL for (int m = 0; m < M; m++)
        UNROLL for (int b = 0; b < L / LANES; b++)
            SIMD for (int l = 0; l < LANES; l++)
                y[m * ld + b * LANES + l] = acc[m][b][l];
}

/* The same for AVX2 and narrower, where a block of 16 lanes is several registers: every loop unrolled, so that the
 * compiler makes vectors of straight-line code. It gives that up in a function as large as 8 x 48 makes. */
ALWAYS_INLINE void tile_correlate_narrow(const int M, const int L, float *restrict y, int64_t ld,
                                         const float *restrict x, const int64_t *restrict offset, int64_t taps,
                                         const float *restrict w, const float *restrict start) {
    float acc[TILE_M][TILE_L];
    UNROLL for (int m = 0; m < M; m++)
        UNROLL for (int l = 0; l < L; l++)
            acc[m][l] = start[m];
    int64_t t = 0;
    do {
        const float *restrict in = x + offset[t];
        UNROLL for (int m = 0; m < M; m++) {
            const float k = w[t * TILE_M + m];
            UNROLL for (int l = 0; l < L; l++)
                acc[m][l] += k * in[l];
        }
    } while (++t < taps);
    UNROLL for (int m = 0; m < M; m++)
        UNROLL for (int l = 0; l < L; l++)
            y[m * ld + l] = acc[m][l];
}

/* sums[s*16 + b*ld + l] += sum over p of a[a_at[p] + offset[s]] * v[v_at[p]*16 + b*v_ld + l]: outer products of S
 * scalars and B blocks of 16 lanes. S and B must be constants at the call; count is at least 1. */
ALWAYS_INLINE void tile_outer(const int S, const int B, float *restrict sums, int64_t ld, const float *restrict a,
                              const int64_t *restrict offset, const int64_t *restrict a_at, const float *restrict v,
                              int64_t v_ld, const int64_t *restrict v_at, int64_t count) {
    float acc[TILE_S][2][LANES];
    const float *from[TILE_S]; /* pointers, so that a load needs no address arithmetic */
    UNROLL for (int s = 0; s < S; s++)
        from[s] = a + offset[s];
    UNROLL for (int s = 0; s < S; s++)
        UNROLL for (int b = 0; b < B; b++)
            SIMD for (int l = 0; l < LANES; l++)
                acc[s][b][l] = 0.0f;
    int64_t p = 0;
    do {
        const float *restrict lanes = v + v_at[p] * LANES;
        const int64_t at = a_at[p];
        UNROLL for (int s = 0; s < S; s++) {
            const float k = from[s][at];
            UNROLL for (int b = 0; b < B; b++)
                SIMD for (int l = 0; l < LANES; l++)
                    acc[s][b][l] += k * lanes[b * v_ld + l];
        }
    } while (++p < count);
    UNROLL for (int s = 0; s < S; s++)
        UNROLL for (int b = 0; b < B; b++)
            SIMD for (int l = 0; l < LANES; l++)
                sums[s * LANES + b * ld + l] += acc[s][b][l];
}

/* sums[s*16 + l] += sum over p of u[(u_at[p] + offset[s])*16 + l] * v[p*16 + l]: lane by lane. */
ALWAYS_INLINE void tile_lanes(const int S, float *restrict sums, const float *restrict u,
                              const int64_t *restrict offset, const int64_t *restrict u_at, const float *restrict v,
                              int64_t count) {
    float acc[TILE_S][LANES];
    const float *from[TILE_S];
    UNROLL for (int s = 0; s < S; s++)
        from[s] = u + offset[s] * LANES;
    UNROLL for (int s = 0; s < S; s++)
        SIMD for (int l = 0; l < LANES; l++)
            acc[s][l] = 0.0f;
    int64_t p = 0;
    do {
        const int64_t at = u_at[p] * LANES;
        UNROLL for (int s = 0; s < S; s++)
            SIMD for (int l = 0; l < LANES; l++)
                acc[s][l] += from[s][at + l] * v[p * LANES + l];
    } while (++p < count);
    UNROLL for (int s = 0; s < S; s++)
        SIMD for (int l = 0; l < LANES; l++)
            sums[s * LANES + l] += acc[s][l];
}

/* clang-format on */

#endif
