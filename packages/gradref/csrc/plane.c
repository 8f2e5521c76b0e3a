/* plane.c: filling zero-padded planes, and turning planes into channels-last lines. Layout and reasons: plane.h.
 *
 * Two facts carry the sharing of zeros. A phase plane has at least pad / stride zeros left of (above) its data; so
 * a row may be cut where its own data ends, if what is read beyond it is no longer than that.
 * Next: correlate.c.
 */
#include "plane.h"

#include "tile.h"

static int64_t gcd(int64_t a, int64_t b) { return b ? gcd(b, a % b) : a; }

/* Rows (columns) of a phase plane: room for the data, for every position, and for what is read past the end. */
static int64_t extent(int64_t length, int64_t out, int64_t kernel, int64_t stride, int64_t pad, int64_t dilation,
                      int64_t *beyond) {
    const int64_t reach = out + (kernel - 1) * dilation / stride;
    const int64_t shared = pad / stride;
    const int64_t n = gradref_max(gradref_ceil_div(length + pad, stride), gradref_max(reach - shared, out));
    *beyond = gradref_max(reach - n, 0);
    return n;
}

gradref_planes gradref_input_planes(const gradref_conv2d_shape *s) {
    gradref_planes p;
    int64_t rows_beyond, cols_beyond;
    p.rows = extent(s->h, s->oh, s->kh, s->stride_h, s->pad_h, s->dilation_h, &rows_beyond);
    p.cols = extent(s->w, s->ow, s->kw, s->stride_w, s->pad_w, s->dilation_w, &cols_beyond);
    p.size = p.rows * p.cols;
    p.images = gradref_max(1, gradref_min(s->n, 4 * TILE_L / p.size));
    p.period_h = s->stride_h / gcd(s->stride_h, s->dilation_h);
    p.period_w = s->stride_w / gcd(s->stride_w, s->dilation_w);
    p.phases_h = gradref_min(s->kh, p.period_h);
    p.phases_w = gradref_min(s->kw, p.period_w);
    p.slack = rows_beyond * p.cols + cols_beyond + TILE_L;
    return p;
}

int64_t gradref_planes_floats(const gradref_planes *p, int64_t channels) {
    return channels * p->phases_h * p->phases_w * p->images * p->size + p->slack;
}

void gradref_input_offsets(int64_t *restrict offset, const gradref_conv2d_shape *s, const gradref_planes *p) {
    for (int64_t c = 0; c < s->c / s->groups; c++)
        for (int64_t k = 0; k < s->kh; k++)
            for (int64_t l = 0; l < s->kw; l++) {
                /* residues k*dilation % stride repeat after `period` taps */
                const int64_t phase = (c * p->phases_h + k % p->period_h) * p->phases_w + l % p->period_w;
                *offset++ = phase * p->images * p->size + k * s->dilation_h / s->stride_h * p->cols +
                            l * s->dilation_w / s->stride_w;
            }
}

GRADREF_CLONES
void gradref_pad_plane(float *restrict line, int64_t rows, int64_t cols, const float *restrict src, int64_t h,
                       int64_t w, int64_t h0, int64_t w0, int64_t step_h, int64_t step_w) {
    /* columns j0 to j1 have a source */
    const int64_t j0 = gradref_min(cols, w0 < 0 ? gradref_ceil_div(-w0, step_w) : 0);
    const int64_t j1 = gradref_max(j0, gradref_min(cols, w0 < w ? gradref_ceil_div(w - w0, step_w) : 0));
    for (int64_t i = 0; i < rows; i++, line += cols) {
        const int64_t row = h0 + i * step_h;
        if (row < 0 || row >= h) {
            for (int64_t j = 0; j < cols; j++)
                line[j] = 0.0f;
            continue;
        }
        const float *from = src + (row * w + w0);
        for (int64_t j = 0; j < j0; j++)
            line[j] = 0.0f;
        if (step_w == 1)
            for (int64_t j = j0; j < j1; j++)
                line[j] = from[j];
        else
            for (int64_t j = j0; j < j1; j++)
                line[j] = from[j * step_w];
        for (int64_t j = j1; j < cols; j++)
            line[j] = 0.0f;
    }
}

void gradref_pad_input(float *restrict line, const float *restrict x, int64_t channels, int64_t images,
                       const gradref_conv2d_shape *s, const gradref_planes *p) {
    for (int64_t c = 0; c < channels; c++)
        for (int64_t a = 0; a < p->phases_h; a++)
            for (int64_t b = 0; b < p->phases_w; b++)
                for (int64_t n = 0; n < p->images; n++, line += p->size)
                    if (n < images)
                        gradref_pad_plane(line, p->rows, p->cols, x + (n * s->c + c) * s->h * s->w, s->h, s->w,
                                          a * s->dilation_h % s->stride_h - s->pad_h,
                                          b * s->dilation_w % s->stride_w - s->pad_w, s->stride_h, s->stride_w);
                    else /* also keeps the zeros below the last image */
                        for (int64_t q = 0; q < p->size; q++)
                            line[q] = 0.0f;
    for (int64_t q = 0; q < p->slack; q++)
        line[q] = 0.0f;
}

GRADREF_CLONES
void gradref_copy_rows(float *restrict dst, int64_t dst_ld, int64_t dst_step, const float *restrict src, int64_t src_ld,
                       int64_t rows, int64_t cols) {
    for (int64_t i = 0; i < rows; i++)
        if (dst_step == 1)
            for (int64_t j = 0; j < cols; j++)
                dst[i * dst_ld + j] = src[i * src_ld + j];
        else
            for (int64_t j = 0; j < cols; j++)
                dst[i * dst_ld + j * dst_step] = src[i * src_ld + j];
}

GRADREF_CLONES
void gradref_channels_last(float *restrict line, const float *restrict src, int64_t ld, int64_t channels,
                           int64_t count) {
    const float *row[LANES];
    for (int k = 0; k < LANES; k++)
        row[k] = src + gradref_min(k, channels - 1) * ld;
    /* sixteen rows side by side: the compiler makes a network of shuffles of the unrolled stores */
    for (int64_t p = 0; p < count; p++)
#pragma GCC unroll 16
        for (int k = 0; k < LANES; k++)
            line[p * LANES + k] = row[k][p];
}

GRADREF_CLONES
void gradref_pack(float *restrict packed, const float *restrict weight, int64_t M, int64_t taps) {
    for (int64_t m = 0; m < M; m += TILE_M, packed += TILE_M * taps, weight += TILE_M * taps)
        if (M - m >= TILE_M)
            for (int64_t t = 0; t < taps; t++)
#pragma GCC unroll 8
                for (int k = 0; k < TILE_M; k++)
                    packed[t * TILE_M + k] = weight[k * taps + t];
        else
            for (int64_t k = 0; k < M - m; k++)
                for (int64_t t = 0; t < taps; t++)
                    packed[t * TILE_M + k] = weight[k * taps + t];
}
