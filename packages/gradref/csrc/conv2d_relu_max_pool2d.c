/* conv2d_relu_max_pool2d.c: convolution, ReLU and max pool as one step, forward, fast.
 *
 * As conv2d.c, but eight channels of the line are pooled while they are still in the first cache: the convolution's
 * output, four times what the pool keeps, never reaches memory. ReLU comes last, on what the pool kept: it changes
 * neither the order of the values nor which of the positive ones comes first, and it is four times less work.
 * Next: patch.h.
 */
#include "plane.h"

#include "tile.h"
#include "window_2x2.h"

enum { SPILL = 32 }; /* a row is written in whole groups of 8, and reads twice as much of the line */

static int64_t line_length(const gradref_conv2d_shape *s, const gradref_planes *p) {
    return gradref_round_up((p->images - 1) * p->size + (s->oh - 1) * p->cols + s->ow, TILE_L);
}

int64_t gradref_conv2d_relu_max_pool2d_workspace(const gradref_conv2d_shape *s, const gradref_pool2d_shape *pool) {
    const gradref_planes p = gradref_input_planes(s);
    const int64_t C = s->c / s->groups, M = gradref_round_up(s->o / s->groups, TILE_M), taps = C * s->kh * s->kw;
    return gradref_planes_floats(&p, C) + TILE_M * line_length(s, &p) + M * taps + 2 * taps + s->oh * s->ow +
           2 * pool->oh * pool->ow + 4 * SPILL + 7 * 16;
}

/* One plane of the line to y and indices. kept, at: room for a pooled plane and the spill; plane: for OH*OW. */
GRADREF_CLONES
void gradref_pool_line(float *restrict y, int32_t *restrict indices, const float *restrict line, int64_t cols,
                       const gradref_pool2d_shape *pool, float *restrict kept, int32_t *restrict at,
                       float *restrict plane) {
    const int64_t pooled = pool->oh * pool->ow;
    if (is_2x2(pool)) /* short rows: what spills into the next one is overwritten by it */
        for (int64_t i = 0; i < pool->oh; i++) {
            float *to = kept + i * pool->ow;
            int32_t *to_at = at + i * pool->ow;
            const float *upper = line + 2 * i * cols;
            if (pool->ow <= 8)
                row_2x2(to, to_at, upper, upper + cols, 2 * i * pool->w, pool->w, 8);
            else if (pool->ow <= 16)
                row_2x2(to, to_at, upper, upper + cols, 2 * i * pool->w, pool->w, 16);
            else
                row_2x2(to, to_at, upper, upper + cols, 2 * i * pool->w, pool->w, gradref_round_up(pool->ow, 8));
        }
    else {
        gradref_copy_rows(plane, pool->w, 1, line, cols, pool->h, pool->w);
        gradref_max_pool2d(kept, at, plane, pool);
    }
    for (int64_t q = 0; q < pooled; q++) {
        const int closed = kept[q] <= 0.0f; /* not of a NaN */
        y[q] = closed ? 0.0f : kept[q];
        indices[q] = closed ? -1 : at[q];
    }
}

void gradref_conv2d_relu_max_pool2d(float *restrict y, int32_t *restrict indices, const float *restrict x,
                                    const float *restrict weight, const float *restrict bias,
                                    const gradref_conv2d_shape *s, const gradref_pool2d_shape *pool,
                                    float *restrict scratch) {
    const gradref_planes p = gradref_input_planes(s);
    const int64_t C = s->c / s->groups, M = s->o / s->groups, taps = C * s->kh * s->kw;
    const int64_t ld = line_length(s, &p), pooled = pool->oh * pool->ow;
    gradref_pool2d_shape one = *pool; /* plane */
    one.planes = 1;
    int64_t *offset = (int64_t *)gradref_carve(&scratch, 2 * taps);
    float *planes = gradref_carve(&scratch, gradref_planes_floats(&p, C));
    float *packed = gradref_carve(&scratch, gradref_round_up(M, TILE_M) * taps);
    float *line = gradref_carve(&scratch, TILE_M * ld + SPILL);
    float *plane = gradref_carve(&scratch, s->oh * s->ow);
    float *kept = gradref_carve(&scratch, pooled + SPILL);
    int32_t *at = (int32_t *)gradref_carve(&scratch, pooled + SPILL);

    gradref_input_offsets(offset, s, &p);
    for (int64_t g = 0; g < s->groups; g++) {
        gradref_pack(packed, weight + g * M * taps, M, taps);
        for (int64_t n = 0; n < s->n; n += p.images) {
            const int64_t images = gradref_min(p.images, s->n - n);
            gradref_pad_input(planes, x + (n * s->c + g * C) * s->h * s->w, C, images, s, &p);
            for (int64_t m = 0; m < M; m += TILE_M) {
                const int64_t many = gradref_min(TILE_M, M - m);
                float start[TILE_M] = {0};
                for (int64_t k = 0; bias && k < many; k++)
                    start[k] = bias[g * M + m + k];
                gradref_correlate(line, ld, planes, (images - 1) * p.size + (s->oh - 1) * p.cols + s->ow, offset, taps,
                                  packed + m * taps, start, many);
                for (int64_t b = 0; b < images; b++)
                    for (int64_t k = 0; k < many; k++) {
                        const int64_t to = ((n + b) * s->o + g * M + m + k) * pooled;
                        gradref_pool_line(y + to, indices + to, line + k * ld + b * p.size, p.cols, &one, kept, at,
                                          plane);
                    }
            }
        }
    }
}
