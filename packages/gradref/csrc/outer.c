/* outer.c: the tile of outer products, run over all scalars and all blocks of lanes.
 *
 * The weight gradient of a convolution is this, and so is every matrix product of linear.c. Declared in plane.h.
 * Next: conv2d_backward_weight.c.
 */
#include "plane.h"

#include "tile.h"

/* All scalars of an outer product, in blocks of equal size. */
ALWAYS_INLINE void outer(const int B, float *restrict sums, int64_t ld, int64_t scalars, const float *restrict a,
                         const int64_t *restrict offset, const int64_t *restrict a_at, const float *restrict v,
                         int64_t v_ld, const int64_t *restrict v_at, int64_t count) {
    const int64_t most = gradref_wide() ? TILE_S : TILE_S / 2;
    const int64_t block = gradref_ceil_div(scalars, gradref_ceil_div(scalars, most));
    for (int64_t t = 0; t < scalars; t += block, sums += block * LANES, offset += block)
        switch (gradref_min(block, scalars - t)) {
#define CASE(S)                                                                                                        \
    case S:                                                                                                            \
        tile_outer(S, B, sums, ld, a, offset, a_at, v, v_ld, v_at, count);                                             \
        break
            CASE(1);
            CASE(2);
            CASE(3);
            CASE(4);
            CASE(5);
            CASE(6);
            CASE(7);
            CASE(8);
            CASE(9);
            CASE(10);
            CASE(11);
            CASE(12);
#undef CASE
        }
}

GRADREF_CLONES
void gradref_outer(float *restrict sums, int64_t scalars, const float *restrict a, const int64_t *restrict offset,
                   const int64_t *restrict a_at, const float *restrict v, int64_t v_ld, const int64_t *restrict v_at,
                   int64_t blocks, int64_t sums_ld, int64_t count) {
    for (; blocks >= 2 && gradref_wide(); blocks -= 2, v += 2 * v_ld, sums += 2 * sums_ld)
        outer(2, sums, sums_ld, scalars, a, offset, a_at, v, v_ld, v_at, count);
    for (; blocks > 0; blocks--, v += v_ld, sums += sums_ld)
        outer(1, sums, sums_ld, scalars, a, offset, a_at, v, v_ld, v_at, count);
}

GRADREF_CLONES
void gradref_lanes(float *restrict sums, int64_t scalars, const float *restrict u, const int64_t *restrict offset,
                   const int64_t *restrict u_at, const float *restrict v, int64_t count) {
    for (; scalars >= 9 && gradref_wide(); scalars -= 9, sums += 9 * LANES, offset += 9)
        tile_lanes(9, sums, u, offset, u_at, v, count);
    for (; scalars >= 3; scalars -= 3, sums += 3 * LANES, offset += 3)
        tile_lanes(3, sums, u, offset, u_at, v, count);
    for (; scalars > 0; scalars--, sums += LANES, offset++)
        tile_lanes(1, sums, u, offset, u_at, v, count);
}
