/* window_2x2.h: one row of a 2x2 max pool, the commonest pool by far; for max_pool2d.c and conv2d_relu_max_pool2d.c.
 *
 * Four named values and four choices without a branch: random data mispredicts every second one. The compiler makes
 * vectors of it, loads of stride 2 included. First maximum, last NaN: the reason is in max_pool2d.c.
 * Next: max_pool2d.c.
 */
#ifndef GRADREF_WINDOW_2X2_H
#define GRADREF_WINDOW_2X2_H

#include "gradref.h"

/* Are the windows 2x2, side by side, none hanging over or on padding? */
static inline int is_2x2(const gradref_pool2d_shape *s) {
    return s->kh == 2 && s->kw == 2 && s->stride_h == 2 && s->stride_w == 2 && !s->pad_h && !s->pad_w &&
           s->dilation_h == 1 && s->dilation_w == 1 && 2 * s->oh <= s->h && 2 * s->ow <= s->w;
}

/* Outputs 0 to n - 1 of the row whose windows start at upper[0], index `at` of a plane of width w. */
static inline __attribute__((always_inline)) void row_2x2(float *restrict y, int32_t *restrict indices,
                                                          const float *restrict upper, const float *restrict lower,
                                                          int64_t at, int64_t w, int64_t n) {
    const int32_t here = (int32_t)at, down = (int32_t)w;
#pragma omp simd
    for (int64_t j = 0; j < n; j++) {
        const float b = upper[2 * j + 1], c = lower[2 * j], d = lower[2 * j + 1];
        float best = upper[2 * j];
        int32_t p = 0;
        const int take_b = (b > best) | (b != b);
        best = take_b ? b : best;
        p = take_b ? 1 : p;
        const int take_c = (c > best) | (c != c);
        best = take_c ? c : best;
        p = take_c ? down : p;
        const int take_d = (d > best) | (d != d);
        best = take_d ? d : best;
        p = take_d ? down + 1 : p;
        y[j] = best;
        indices[j] = here + 2 * (int32_t)j + p;
    }
}

#endif
