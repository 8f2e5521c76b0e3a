/* avg_pool2d.c: average pooling and its gradient: the textbook loops, then the fast kernels.
 *
 * The divisor is the number of window entries that lie within the padded input (count_include_pad) or within the input
 * alone; a part of the window that hangs over the lower or right edge of the padding never counts.
 * Sums are kept in double where a window is large or a row short; a row of small windows is summed in float vectors.
 * Next: bindings.cpp.
 */
#include "gradref.h"

static inline int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t max64(int64_t a, int64_t b) { return a > b ? a : b; }

/* One axis of the window of output i: entries first to last - 1 of the input, and what it counts for. */
typedef struct {
    int64_t first, last, count;
} Window;

static inline Window window(int64_t i, int64_t length, int64_t kernel, int64_t stride, int64_t pad,
                            int count_include_pad) {
    const int64_t start = i * stride - pad, end = min64(start + kernel, length + pad);
    Window a = {max64(start, 0), min64(end, length), end - start};
    if (!count_include_pad)
        a.count = a.last - a.first;
    return a;
}

/* ---- as the book writes it ---- */

void gradref_avg_pool2d_reference(float *restrict y, const float *restrict x, const gradref_pool2d_shape *s,
                                  int count_include_pad) {
    for (int64_t c = 0; c < s->planes; c++)
        for (int64_t i = 0; i < s->oh; i++)
            for (int64_t j = 0; j < s->ow; j++) {
                const Window a = window(i, s->h, s->kh, s->stride_h, s->pad_h, count_include_pad);
                const Window b = window(j, s->w, s->kw, s->stride_w, s->pad_w, count_include_pad);
                double sum = 0.0; /* one by one in float, 256 x 256 entries would lose three digits */
                for (int64_t h = a.first; h < a.last; h++)
                    for (int64_t w = b.first; w < b.last; w++)
                        sum += x[(c * s->h + h) * s->w + w];
                y[(c * s->oh + i) * s->ow + j] = (float)(sum / (double)(a.count * b.count));
            }
}

void gradref_avg_pool2d_backward_reference(float *restrict dx, const float *restrict grad,
                                           const gradref_pool2d_shape *s, int count_include_pad) {
    for (int64_t q = 0; q < s->planes * s->h * s->w; q++)
        dx[q] = 0.0f;
    for (int64_t c = 0; c < s->planes; c++)
        for (int64_t i = 0; i < s->oh; i++)
            for (int64_t j = 0; j < s->ow; j++) {
                const Window a = window(i, s->h, s->kh, s->stride_h, s->pad_h, count_include_pad);
                const Window b = window(j, s->w, s->kw, s->stride_w, s->pad_w, count_include_pad);
                const float g = grad[(c * s->oh + i) * s->ow + j] / (float)(a.count * b.count);
                for (int64_t h = a.first; h < a.last; h++)
                    for (int64_t w = b.first; w < b.last; w++)
                        dx[(c * s->h + h) * s->w + w] += g;
            }
}

/* ---- fast ---- */

/* 2x2 windows side by side, none hanging over or on padding. */
static inline int is_2x2(const gradref_pool2d_shape *s) {
    return s->kh == 2 && s->kw == 2 && s->stride_h == 2 && s->stride_w == 2 && !s->pad_h && !s->pad_w &&
           2 * s->oh <= s->h && 2 * s->ow <= s->w;
}

static inline __attribute__((always_inline)) void row_2x2(float *restrict y, const float *restrict upper,
                                                          const float *restrict lower, int64_t n) {
#pragma omp simd
    for (int64_t j = 0; j < n; j++)
        y[j] = (upper[2 * j] + upper[2 * j + 1] + lower[2 * j] + lower[2 * j + 1]) * 0.25f;
}

/* Short rows in whole groups of 8, as in max_pool2d.c: the spill is overwritten by the next row. */
static inline __attribute__((always_inline)) void all_2x2(float *restrict y, const float *restrict x,
                                                          const gradref_pool2d_shape *s) {
    const int64_t rows = s->planes * s->oh, spill = (s->ow + 7) / 8 * 8;
    const int64_t y_end = rows * s->ow, x_end = s->planes * s->h * s->w;
    for (int64_t r = 0; r < rows; r++) {
        const int64_t at = r / s->oh * s->h * s->w + r % s->oh * 2 * s->w;
        const int fits = r * s->ow + spill <= y_end && at + s->w + 2 * spill <= x_end;
        if (s->ow <= 8 && fits)
            row_2x2(y + r * s->ow, x + at, x + at + s->w, 8);
        else if (s->ow <= 16 && fits)
            row_2x2(y + r * s->ow, x + at, x + at + s->w, 16);
        else
            row_2x2(y + r * s->ow, x + at, x + at + s->w, fits ? spill : s->ow);
    }
}

/* A window at a time, its sum in double: for few outputs a row (global pooling, for one) and for large windows. */
static inline __attribute__((always_inline)) void by_windows(float *restrict y, const float *restrict x,
                                                             const gradref_pool2d_shape *s, int count_include_pad) {
    for (int64_t r = 0; r < s->planes * s->oh; r++) {
        const Window a = window(r % s->oh, s->h, s->kh, s->stride_h, s->pad_h, count_include_pad);
        for (int64_t j = 0; j < s->ow; j++) {
            const Window b = window(j, s->w, s->kw, s->stride_w, s->pad_w, count_include_pad);
            double sum = 0.0;
            for (int64_t h = a.first; h < a.last; h++) {
                const float *restrict row = x + (r / s->oh * s->h + h) * s->w;
#pragma omp simd reduction(+ : sum)
                for (int64_t w = b.first; w < b.last; w++)
                    sum += row[w];
            }
            y[r * s->ow + j] = (float)(sum / (double)(a.count * b.count));
        }
    }
}

/* Outputs first to last - 1 of a row for which column tap l lies inside the input. */
typedef struct {
    int64_t first, last;
} Range;

static inline Range inside(int64_t l, const gradref_pool2d_shape *s) {
    const int64_t before = s->pad_w - l, room = s->w + before;
    Range r = {before > 0 ? (before + s->stride_w - 1) / s->stride_w : 0, 0};
    r.last = room > 0 ? min64(s->ow, (room - 1) / s->stride_w + 1) : 0;
    return r;
}

/* Outputs of a row that are computed together; their divisors are worked out once for all rows and planes. */
enum { CHUNK = 256, LARGE = 64 /* entries of a window that floats may add one by one */ };

static void column_counts(float *restrict count, int64_t first, int64_t n, const gradref_pool2d_shape *s,
                          int count_include_pad) {
    for (int64_t j = 0; j < n; j++)
        count[j] = (float)window(first + j, s->w, s->kw, s->stride_w, s->pad_w, count_include_pad).count;
}

GRADREF_CLONES
void gradref_avg_pool2d(float *restrict y, const float *restrict x, const gradref_pool2d_shape *s,
                        int count_include_pad) {
    float count[CHUNK];
    if (is_2x2(s)) {
        all_2x2(y, x, s);
        return;
    }
    if (s->ow < 4 || s->kh * s->kw > LARGE) {
        by_windows(y, x, s, count_include_pad);
        return;
    }
    for (int64_t j0 = 0; j0 < s->ow; j0 += CHUNK) {
        const int64_t j1 = min64(s->ow, j0 + CHUNK);
        column_counts(count, j0, j1 - j0, s, count_include_pad);
        for (int64_t r = 0; r < s->planes * s->oh; r++) {
            const Window a = window(r % s->oh, s->h, s->kh, s->stride_h, s->pad_h, count_include_pad);
            float *restrict to = y + r * s->ow;
            for (int64_t j = j0; j < j1; j++)
                to[j] = 0.0f;
            for (int64_t h = a.first; h < a.last; h++)
                for (int64_t l = 0; l < s->kw; l++) { /* a tap at a time over the whole row: vectors of outputs */
                    const Range in = inside(l, s);
                    const float *restrict from = x + (r / s->oh * s->h + h) * s->w + l - s->pad_w;
                    for (int64_t j = max64(j0, in.first); j < min64(j1, in.last); j++)
                        to[j] += from[j * s->stride_w];
                }
            for (int64_t j = j0; j < j1; j++)
                to[j] /= (float)a.count * count[j - j0];
        }
    }
}

static inline __attribute__((always_inline)) void backward_2x2(float *restrict dx, const float *restrict grad,
                                                               const gradref_pool2d_shape *s) {
    for (int64_t c = 0; c < s->planes; c++, dx += s->h * s->w) {
        for (int64_t i = 0; i < s->oh; i++, grad += s->ow) {
            float *restrict upper = dx + 2 * i * s->w, *restrict lower = upper + s->w;
#pragma omp simd
            for (int64_t j = 0; j < s->ow; j++)
                upper[2 * j] = upper[2 * j + 1] = lower[2 * j] = lower[2 * j + 1] = grad[j] * 0.25f;
            for (int64_t w = 2 * s->ow; w < s->w; w++)
                upper[w] = lower[w] = 0.0f;
        }
        for (int64_t q = 2 * s->oh * s->w; q < s->h * s->w; q++)
            dx[q] = 0.0f;
    }
}

GRADREF_CLONES
void gradref_avg_pool2d_backward(float *restrict dx, const float *restrict grad, const gradref_pool2d_shape *s,
                                 int count_include_pad) {
    float count[CHUNK], g[CHUNK];
    if (is_2x2(s)) {
        backward_2x2(dx, grad, s);
        return;
    }
    if (s->ow < 4) {
        gradref_avg_pool2d_backward_reference(dx, grad, s, count_include_pad);
        return;
    }
    for (int64_t q = 0; q < s->planes * s->h * s->w; q++)
        dx[q] = 0.0f;
    for (int64_t j0 = 0; j0 < s->ow; j0 += CHUNK) {
        const int64_t j1 = min64(s->ow, j0 + CHUNK);
        column_counts(count, j0, j1 - j0, s, count_include_pad);
        for (int64_t r = 0; r < s->planes * s->oh; r++) {
            const Window a = window(r % s->oh, s->h, s->kh, s->stride_h, s->pad_h, count_include_pad);
            for (int64_t j = j0; j < j1; j++)
                g[j - j0] = grad[r * s->ow + j] / ((float)a.count * count[j - j0]);
            for (int64_t h = a.first; h < a.last; h++)
                for (int64_t l = 0; l < s->kw; l++) {
                    const Range in = inside(l, s);
                    float *restrict to = dx + (r / s->oh * s->h + h) * s->w + l - s->pad_w;
                    for (int64_t j = max64(j0, in.first); j < min64(j1, in.last); j++)
                        to[j * s->stride_w] += g[j - j0];
                }
        }
    }
}
