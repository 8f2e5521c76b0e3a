/* conv2d.c: the forward convolution, fast.
 *
 * For each group: pack the weights once, then for each image copy its channels into padded planes (plane.h), run the
 * tile over the flat line (correlate.c), and copy the rows out without the junk columns.
 * Any stride, padding, dilation and grouping; the same sums as conv2d_reference.c, in another order.
 * Next: conv2d_backward_input.c.
 */
#include "plane.h"

#include "tile.h"

static int64_t line_length(const gradref_conv2d_shape *s, const gradref_planes *p) {
    return gradref_round_up((p->images - 1) * p->size + (s->oh - 1) * p->cols + s->ow, TILE_L);
}

int64_t gradref_conv2d_workspace(const gradref_conv2d_shape *s) {
    const gradref_planes p = gradref_input_planes(s);
    const int64_t C = s->c / s->groups, M = gradref_round_up(s->o / s->groups, TILE_M), taps = C * s->kh * s->kw;
    return gradref_planes_floats(&p, C) + TILE_M * line_length(s, &p) + M * taps + 2 * taps + 4 * 16;
}

void gradref_conv2d(float *restrict y, const float *restrict x, const float *restrict weight,
                    const float *restrict bias, const gradref_conv2d_shape *s, float *restrict scratch) {
    const gradref_planes p = gradref_input_planes(s);
    const int64_t C = s->c / s->groups, M = s->o / s->groups, taps = C * s->kh * s->kw;
    const int64_t ld = line_length(s, &p), out = s->oh * s->ow;
    int64_t *offset = (int64_t *)gradref_carve(&scratch, 2 * taps);
    float *planes = gradref_carve(&scratch, gradref_planes_floats(&p, C));
    float *packed = gradref_carve(&scratch, gradref_round_up(M, TILE_M) * taps);
    float *line = gradref_carve(&scratch, TILE_M * ld);

    gradref_input_offsets(offset, s, &p);
    for (int64_t g = 0; g < s->groups; g++) {
        gradref_pack(packed, weight + g * M * taps, M, taps);
        for (int64_t n = 0; n < s->n; n += p.images) {
            const int64_t images = gradref_min(p.images, s->n - n);
            gradref_pad_input(planes, x + (n * s->c + g * C) * s->h * s->w, C, images, s, &p);
            for (int64_t m = 0; m < M; m += TILE_M) { /* eight channels of a line stay in the first cache */
                const int64_t many = gradref_min(TILE_M, M - m);
                float start[TILE_M] = {0};
                for (int64_t k = 0; bias && k < many; k++)
                    start[k] = bias[g * M + m + k];
                gradref_correlate(line, ld, planes, (images - 1) * p.size + (s->oh - 1) * p.cols + s->ow, offset, taps,
                                  packed + m * taps, start, many);
                for (int64_t b = 0; b < images; b++)
                    for (int64_t k = 0; k < many; k++)
                        gradref_copy_rows(y + ((n + b) * s->o + g * M + m + k) * out, s->ow, 1,
                                          line + k * ld + b * p.size, p.cols, s->oh, s->ow);
            }
        }
    }
}
