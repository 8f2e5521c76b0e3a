/* correlate.c: the tile of tile.h, run along a line of padded planes for up to 8 output channels.
 *
 * The forward convolution and the input gradient are both this, with other offsets and other weights. So is a
 * matrix product (offset[t] = t * ld).
 * Next: conv2d.c.
 */
#include "plane.h"

#include "tile.h"

/* Up to four channels. */
ALWAYS_INLINE void narrow(int64_t M, float *restrict y, int64_t ld, const float *restrict x,
                          const int64_t *restrict offset, int64_t taps, const float *restrict w,
                          const float *restrict start) {
    if (M >= 4)
        tile_correlate_narrow(4, NARROW_L, y, ld, x, offset, taps, w, start);
    else if (M == 3)
        tile_correlate_narrow(3, NARROW_L, y, ld, x, offset, taps, w, start);
    else if (M == 2)
        tile_correlate_narrow(2, NARROW_L, y, ld, x, offset, taps, w, start);
    else
        tile_correlate_narrow(1, NARROW_L, y, ld, x, offset, taps, w, start);
}

GRADREF_CLONES
void gradref_correlate(float *restrict y, int64_t ld, const float *restrict x, int64_t count,
                       const int64_t *restrict offset, int64_t taps, const float *restrict w,
                       const float *restrict start, int64_t M) {
    if (!gradref_wide()) {
        for (int64_t p = 0; p < count; p += NARROW_L)
            for (int64_t m = 0; m < M; m += NARROW_M)
                narrow(M - m, y + m * ld + p, ld, x + p, offset, taps, w + m, start + m);
        return;
    }
    for (int64_t p = 0; p < count; p += TILE_L, x += TILE_L, y += TILE_L)
        switch (M) {
        case 1:
            tile_correlate(1, TILE_L, y, ld, x, offset, taps, w, start);
            break;
        case 2:
            tile_correlate(2, TILE_L, y, ld, x, offset, taps, w, start);
            break;
        case 3:
            tile_correlate(3, TILE_L, y, ld, x, offset, taps, w, start);
            break;
        case 4:
            tile_correlate(4, TILE_L, y, ld, x, offset, taps, w, start);
            break;
        case 5:
            tile_correlate(5, TILE_L, y, ld, x, offset, taps, w, start);
            break;
        case 6:
            tile_correlate(6, TILE_L, y, ld, x, offset, taps, w, start);
            break;
        case 7:
            tile_correlate(7, TILE_L, y, ld, x, offset, taps, w, start);
            break;
        default:
            if (count - p > 2 * LANES)
                tile_correlate(TILE_M, TILE_L, y, ld, x, offset, taps, w, start);
            else if (count - p > LANES) /* the end of the line: narrower tiles waste less */
                tile_correlate(TILE_M, 2 * LANES, y, ld, x, offset, taps, w, start);
            else
                tile_correlate(TILE_M, LANES, y, ld, x, offset, taps, w, start);
        }
}
