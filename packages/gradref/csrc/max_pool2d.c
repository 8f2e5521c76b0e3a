/* max_pool2d.c: max pooling and its gradient: the textbook loops, then the fast kernels.
 *
 * The answer is the first maximum in row-major order; a NaN beats every number, and the last NaN of a window beats the
 * others. Scanning forward, `(v > best) || v != v` does exactly that, and the compiler can vectorise it (keeping the
 * first NaN it could not). Padding is no entry of the input and never wins.
 * Next: avg_pool2d.c.
 */
#include "gradref.h"

#include <math.h>

static inline int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }

/* Outputs first to last - 1 of a row (or column) for which tap k lies inside the input. */
typedef struct {
    int64_t first, last;
} Range;

static inline Range inside(int64_t k, int64_t out, int64_t length, int64_t stride, int64_t pad, int64_t dilation) {
    const int64_t before = pad - k * dilation; /* output j reads entry j*stride - before */
    Range r = {before > 0 ? (before + stride - 1) / stride : 0, 0};
    r.last = length + before > 0 ? min64(out, (length + before - 1) / stride + 1) : 0;
    return r;
}

/* ---- as the book writes it ---- */

void gradref_max_pool2d_reference(float *restrict y, int32_t *restrict indices, const float *restrict x,
                                  const gradref_pool2d_shape *s) {
    for (int64_t c = 0; c < s->planes; c++)
        for (int64_t i = 0; i < s->oh; i++)
            for (int64_t j = 0; j < s->ow; j++) {
                float best = 0.0f;
                int64_t at = -1;
                for (int64_t k = 0; k < s->kh; k++)
                    for (int64_t l = 0; l < s->kw; l++) {
                        const int64_t h = i * s->stride_h + k * s->dilation_h - s->pad_h;
                        const int64_t w = j * s->stride_w + l * s->dilation_w - s->pad_w;
                        if (h < 0 || h >= s->h || w < 0 || w >= s->w)
                            continue;
                        const float v = x[(c * s->h + h) * s->w + w];
                        if (at < 0 || v > best || v != v) {
                            best = v;
                            at = h * s->w + w;
                        }
                    }
                y[(c * s->oh + i) * s->ow + j] = best;
                indices[(c * s->oh + i) * s->ow + j] = (int32_t)at;
            }
}

int gradref_max_pool2d_backward_reference(float *restrict dx, const float *restrict grad,
                                          const int32_t *restrict indices, const gradref_pool2d_shape *s) {
    const int64_t in = s->h * s->w, out = s->oh * s->ow;
    int wrong = 0;
    for (int64_t q = 0; q < s->planes * in; q++)
        dx[q] = 0.0f;
    for (int64_t c = 0; c < s->planes; c++)
        for (int64_t p = 0; p < out; p++) {
            const int64_t at = indices[c * out + p];
            if (at >= 0 && at < in)
                dx[c * in + at] += grad[c * out + p];
            else
                wrong = 1;
        }
    return wrong;
}

/* ---- fast ---- */

/* 2x2 windows side by side, none hanging over or on padding: the commonest pool by far. */
static inline int is_2x2(const gradref_pool2d_shape *s) {
    return s->kh == 2 && s->kw == 2 && s->stride_h == 2 && s->stride_w == 2 && !s->pad_h && !s->pad_w &&
           s->dilation_h == 1 && s->dilation_w == 1 && 2 * s->oh <= s->h && 2 * s->ow <= s->w;
}

/* Outputs 0 to n - 1 of the row whose windows start at index `at` of the plane. */
static inline __attribute__((always_inline)) void
row_2x2(float *restrict y, int32_t *restrict indices, const float *restrict plane, int64_t at, int64_t w, int64_t n) {
    const float *restrict upper = plane + at, *restrict lower = upper + w;
    const int32_t here = (int32_t)at, below = (int32_t)(at + w);
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
        p = take_c ? below - here : p;
        const int take_d = (d > best) | (d != d);
        best = take_d ? d : best;
        p = take_d ? below - here + 1 : p;
        y[j] = best;
        indices[j] = here + 2 * (int32_t)j + p;
    }
}

/* Short rows are written in whole groups of 8: what spills over is overwritten by the next row, which one thread
 * writes later. So all rows but those near the end of the arrays may spill, in y and in what they read of x. */
static inline __attribute__((always_inline)) void all_2x2(float *restrict y, int32_t *restrict indices,
                                                          const float *restrict x, const gradref_pool2d_shape *s) {
    const int64_t rows = s->planes * s->oh, spill = (s->ow + 7) / 8 * 8;
    const int64_t y_end = rows * s->ow, x_end = s->planes * s->h * s->w;
    for (int64_t r = 0; r < rows; r++) {
        const int64_t c = r / s->oh, at = r % s->oh * 2 * s->w;
        const int fits = r * s->ow + spill <= y_end && c * s->h * s->w + at + s->w + 2 * spill <= x_end;
        if (s->ow <= 8 && fits) /* a constant count: no loop at all */
            row_2x2(y + r * s->ow, indices + r * s->ow, x + c * s->h * s->w, at, s->w, 8);
        else if (s->ow <= 16 && fits)
            row_2x2(y + r * s->ow, indices + r * s->ow, x + c * s->h * s->w, at, s->w, 16);
        else
            row_2x2(y + r * s->ow, indices + r * s->ow, x + c * s->h * s->w, at, s->w, fits ? spill : s->ow);
    }
}

GRADREF_CLONES
void gradref_max_pool2d(float *restrict y, int32_t *restrict indices, const float *restrict x,
                        const gradref_pool2d_shape *s) {
    if (is_2x2(s)) {
        all_2x2(y, indices, x, s);
        return;
    }
    if (s->ow < 4) { /* no row to make vectors of; global pooling, for one */
        gradref_max_pool2d_reference(y, indices, x, s);
        return;
    }
    for (int64_t c = 0; c < s->planes; c++)
        for (int64_t i = 0; i < s->oh; i++, y += s->ow, indices += s->ow) {
            const float *restrict plane = x + c * s->h * s->w;
            const int64_t h0 = i * s->stride_h - s->pad_h;
            /* start at the window's first entry, so that a window of minus infinities still has a position */
            const int64_t skip = h0 < 0 ? (-h0 + s->dilation_h - 1) / s->dilation_h : 0;
            const int64_t first = (h0 + skip * s->dilation_h) * s->w;
            for (int64_t j = 0; j < s->ow; j++) {
                const int64_t w0 = j * s->stride_w - s->pad_w;
                y[j] = -INFINITY;
                indices[j] =
                    (int32_t)(first + (w0 < 0 ? w0 + (-w0 + s->dilation_w - 1) / s->dilation_w * s->dilation_w : w0));
            }
            for (int64_t k = skip; k < s->kh && h0 + k * s->dilation_h < s->h; k++)
                for (int64_t l = 0; l < s->kw; l++) { /* a tap at a time over the whole row: vectors of outputs */
                    const Range r = inside(l, s->ow, s->w, s->stride_w, s->pad_w, s->dilation_w);
                    const int64_t at = (h0 + k * s->dilation_h) * s->w + l * s->dilation_w - s->pad_w;
                    for (int64_t j = r.first; j < r.last; j++) {
                        const float v = plane[at + j * s->stride_w];
                        const int take = (v > y[j]) | (v != v);
                        y[j] = take ? v : y[j];
                        indices[j] = take ? (int32_t)(at + j * s->stride_w) : indices[j];
                    }
                }
        }
}

/* Windows side by side write every entry of dx once: no zeroing, no scatter. */
static inline __attribute__((always_inline)) int backward_2x2(float *restrict dx, const float *restrict grad,
                                                              const int32_t *restrict indices,
                                                              const gradref_pool2d_shape *s) {
    const uint32_t in = (uint32_t)(s->h * s->w);
    int wrong = 0;
    for (int64_t c = 0; c < s->planes; c++, dx += in) {
        for (int64_t i = 0; i < s->oh; i++, grad += s->ow, indices += s->ow) {
            float *restrict upper = dx + 2 * i * s->w, *restrict lower = upper + s->w;
            const int32_t here = (int32_t)(2 * i * s->w), below = here + (int32_t)s->w;
#pragma omp simd reduction(| : wrong)
            for (int32_t j = 0; j < (int32_t)s->ow; j++) {
                const float g = grad[j];
                const int32_t at = indices[j] - 2 * j;
                wrong |= (uint32_t)indices[j] >= in;
                upper[2 * j] = at == here ? g : 0.0f;
                upper[2 * j + 1] = at == here + 1 ? g : 0.0f;
                lower[2 * j] = at == below ? g : 0.0f;
                lower[2 * j + 1] = at == below + 1 ? g : 0.0f;
            }
            for (int64_t w = 2 * s->ow; w < s->w; w++)
                upper[w] = lower[w] = 0.0f;
        }
        for (int64_t q = 2 * s->oh * s->w; q < s->h * s->w; q++)
            dx[q] = 0.0f;
    }
    return wrong;
}

GRADREF_CLONES
int gradref_max_pool2d_backward(float *restrict dx, const float *restrict grad, const int32_t *restrict indices,
                                const gradref_pool2d_shape *s) {
    const int64_t in = s->h * s->w, out = s->oh * s->ow;
    int wrong = 0;
    if (is_2x2(s) && s->ow >= 16) /* on shorter rows the scatter is as fast */
        return backward_2x2(dx, grad, indices, s);
    for (int64_t c = 0; c < s->planes; c++, dx += in, grad += out, indices += out) {
        for (int64_t q = 0; q < in; q++)
            dx[q] = 0.0f;
        for (int64_t p = 0; p < out; p++) {
            const int64_t at = indices[p];
            if (at >= 0 && at < in)
                dx[at] += grad[p];
            else
                wrong = 1;
        }
    }
    return wrong;
}
