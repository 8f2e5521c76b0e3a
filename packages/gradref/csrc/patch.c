/* patch.c: padded images with their channels innermost, lists of open entries, and the tiles over their windows.
 * Layout and reasons: patch.h.
 *
 * Next: conv2d_relu_max_pool2d_backward.c.
 */
#include "patch.h"

#include "tile.h"

gradref_patch gradref_patch_of(const gradref_conv2d_shape *s) {
    gradref_patch p;
    const int64_t C = s->c / s->groups;
    p.lanes = gradref_min(C, LANES);
    p.blocks = gradref_ceil_div(C, p.lanes);
    /* all windows, and all of the input */
    p.rows = gradref_max((s->oh - 1) * s->stride_h + (s->kh - 1) * s->dilation_h + 1, s->pad_h + s->h);
    p.cols = gradref_max((s->ow - 1) * s->stride_w + (s->kw - 1) * s->dilation_w + 1, s->pad_w + s->w);
    p.pixels = gradref_round_up(p.rows * p.cols, LANES);
    const int64_t runs = s->dilation_w == 1 ? s->kh : s->kh * s->kw; /* of one block */
    p.run = s->dilation_w == 1 ? s->kw * p.lanes : p.lanes;
    p.run_pieces = gradref_ceil_div(p.run, LANES);
    p.pieces = p.blocks * runs * p.run_pieces;
    p.floats = p.blocks * p.pixels * p.lanes + LANES;
    return p;
}

int64_t gradref_patch_line(const gradref_conv2d_shape *s) { return 2 * LANES * s->h * s->w; }

void gradref_patch_tables(int64_t *restrict offset, int64_t *restrict tap, int64_t *restrict start,
                          const gradref_conv2d_shape *s, const gradref_patch *p) {
    const int64_t C = s->c / s->groups, columns = s->dilation_w == 1 ? 1 : s->kw;
    for (int64_t b = 0; b < p->blocks; b++)
        for (int64_t k = 0; k < s->kh; k++)
            for (int64_t l = 0; l < columns; l++)
                for (int64_t first = 0; first < p->run; first += LANES) {
                    *offset++ =
                        b * p->pixels * p->lanes + (k * s->dilation_h * p->cols + l * s->dilation_w) * p->lanes + first;
                    for (int64_t r = first; r < first + LANES; r++) {
                        const int64_t c = b * p->lanes + r % p->lanes;
                        *tap++ = r < p->run && c < C ? (c * s->kh + k) * s->kw + l + r / p->lanes : -1;
                    }
                }
    start[-1] = 0;
    for (int64_t i = 0; i < s->oh; i++)
        for (int64_t j = 0; j < s->ow; j++)
            *start++ = (i * s->stride_h * p->cols + j * s->stride_w) * p->lanes;
}

/* Sixteen channels at a time are turned around without the padding, so that rows move as a whole afterwards. */
void gradref_patch_fill(float *restrict image, const float *restrict x, const gradref_conv2d_shape *s,
                        const gradref_patch *p, float *restrict line) {
    const int64_t C = s->c / s->groups, in = s->h * s->w, row = p->cols * p->lanes;
    float *inner = image + (s->pad_h * p->cols + s->pad_w) * p->lanes;
    if (p->lanes < LANES)
        for (int64_t c = 0; c < C; c++)
            gradref_copy_rows(inner + c, row, p->lanes, x + c * in, s->w, s->h, s->w);
    else
        for (int64_t c = 0; c < C; c += LANES, inner += p->pixels * LANES) {
            gradref_channels_last(line, x + c * in, in, gradref_min(LANES, C - c), in);
            gradref_copy_rows(inner, row, 1, line, s->w * LANES, s->h, s->w * LANES);
        }
}

void gradref_patch_empty(float *restrict dx, const float *restrict image, const gradref_conv2d_shape *s,
                         const gradref_patch *p, float *restrict line) {
    const int64_t C = s->c / s->groups, in = s->h * s->w, row = p->cols * p->lanes;
    const float *inner = image + (s->pad_h * p->cols + s->pad_w) * p->lanes;
    if (p->lanes < LANES)
        for (int64_t q = 0; q < C * s->h; q++)
            for (int64_t j = 0; j < s->w; j++)
                dx[q * s->w + j] = inner[q % s->h * row + j * p->lanes + q / s->h];
    else
        for (int64_t c = 0; c < C; c += LANES, inner += p->pixels * LANES) {
            float *planes = line + LANES * in;
            gradref_copy_rows(line, s->w * LANES, 1, inner, row, s->h, s->w * LANES);
            if (C - c >= LANES)
                gradref_channels_first(dx + c * in, in, line, in);
            else {
                gradref_channels_first(planes, in, line, in);
                gradref_copy_rows(dx + c * in, in, 1, planes, in, C - c, in);
            }
        }
}

GRADREF_CLONES
int64_t gradref_patch_list(int64_t *restrict at, float *restrict g, const float *restrict grad,
                           const int32_t *restrict indices, int64_t pooled, const int64_t *restrict start, int64_t out,
                           int *wrong) {
    int64_t count = 0;
    int outside = 0;
#pragma omp simd reduction(| : outside)
    for (int64_t q = 0; q < pooled; q++)
        outside |= (uint32_t)indices[q] + 1 > (uint32_t)out;
    if (outside) { /* skip them; it need not be fast */
        *wrong = 1;
        for (int64_t q = 0; q < pooled; q++)
            if (indices[q] >= 0 && indices[q] < out) {
                at[count] = start[indices[q]];
                g[count++] = grad[q];
            }
        return count;
    }
    for (int64_t q = 0; q < pooled; q++) { /* no branch, since which entries are open is random: a closed one is */
        at[count] = start[indices[q]];     /* written too (start[-1] exists) and overwritten by the next */
        g[count] = grad[q];
        count += 1 + (indices[q] >> 31);
    }
    return count;
}

/* All pieces of a window, in groups of nearly equal size: the most that registers hold. */
#define ALL_PIECES(RUN)                                                                                                \
    const int64_t most = gradref_wide() ? TILE_S : TILE_S / 4;                                                         \
    const int64_t group = gradref_ceil_div(pieces, gradref_ceil_div(pieces, most));                                    \
    for (int64_t t = 0; t < pieces; t += group)                                                                        \
        switch (gradref_min(group, pieces - t)) {                                                                      \
            RUN(1) RUN(2) RUN(3) RUN(4) RUN(5) RUN(6) RUN(7) RUN(8) RUN(9) RUN(10) RUN(11) RUN(12)                     \
        }

GRADREF_CLONES
void gradref_patch_gather(float *restrict sums, const float *restrict image, const int64_t *restrict offset,
                          int64_t pieces, const int64_t *restrict at, const float *restrict g, int64_t count) {
#define GATHER(S)                                                                                                      \
    case S:                                                                                                            \
        tile_gather(S, sums + t * LANES, image, offset + t, at, g, count);                                             \
        break;
    ALL_PIECES(GATHER)
}

GRADREF_CLONES
void gradref_patch_scatter(float *restrict image, const float *restrict w, const int64_t *restrict offset,
                           int64_t pieces, const int64_t *restrict at, const float *restrict g, int64_t count) {
#define SCATTER(S)                                                                                                     \
    case S:                                                                                                            \
        tile_scatter(S, image, offset + t, w + t * LANES, at, g, count);                                               \
        break;
    ALL_PIECES(SCATTER)
}
