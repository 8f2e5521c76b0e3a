/* conv2d_backward_input.c: the gradient of a convolution's input, fast.
 *
 * dx is a convolution too: of the zero-padded grad with the flipped kernel, input and output channels exchanged; the
 * flip is in the offset table. With a stride, the entries of dx fall into stride*stride residues of (h + pad, w + pad),
 * and each residue meets its own taps only: one small convolution for each.
 * The zeros around grad must not meet an infinite weight (contract: gradref.h), so those take plain rows instead.
 * Next: conv2d_backward_weight.c.
 */
#include "plane.h"

#include "tile.h"

/* One axis. Entry `first + stride*a` of dx, a < count, reads grad[shift + a - k*dilation/stride] for the taps k with
 * k*dilation % stride == residue. */
typedef struct {
    int64_t first, count, shift;
} Residue;

static Residue residue_of(int64_t residue, int64_t length, int64_t stride, int64_t pad) {
    Residue r;
    r.shift = gradref_ceil_div(gradref_max(pad - residue, 0), stride);
    r.first = residue + r.shift * stride - pad;
    r.count = r.first < length ? gradref_ceil_div(length - r.first, stride) : 0;
    return r;
}

/* Rows (columns) of a padded plane of grad, and the zeros at its top (left). */
typedef struct {
    int64_t zeros, extent, beyond;
} Axis;

static Axis axis_of(int64_t length, int64_t out, int64_t kernel, int64_t stride, int64_t pad, int64_t dilation) {
    Axis a = {0, 0, 0};
    int64_t reach = 0;
    for (int64_t k = 0; k < kernel; k++) {
        const Residue r = residue_of(k * dilation % stride, length, stride, pad);
        a.zeros = gradref_max(a.zeros, k * dilation / stride - r.shift);
        reach = gradref_max(reach, r.shift + r.count - k * dilation / stride);
    }
    a.extent = gradref_max(a.zeros + out, gradref_max(reach, gradref_ceil_div(length, stride)));
    a.beyond = gradref_max(a.zeros + reach - a.extent, 0);
    return a;
}

typedef struct {
    Axis h, w;
    gradref_planes planes;
    int64_t ld;
} Layout;

static Layout layout_of(const gradref_conv2d_shape *s) {
    Layout a;
    a.h = axis_of(s->h, s->oh, s->kh, s->stride_h, s->pad_h, s->dilation_h);
    a.w = axis_of(s->w, s->ow, s->kw, s->stride_w, s->pad_w, s->dilation_w);
    const int64_t size = a.h.extent * a.w.extent;
    a.planes = (gradref_planes){.rows = a.h.extent,
                                .cols = a.w.extent,
                                .size = size,
                                .images = gradref_max(1, gradref_min(s->n, 4 * TILE_L / size)),
                                .phases_h = 1,
                                .phases_w = 1,
                                .slack = a.h.beyond * a.w.extent + a.w.beyond + TILE_L};
    a.ld = gradref_round_up(a.planes.images * size, TILE_L);
    return a;
}

int64_t gradref_conv2d_backward_input_workspace(const gradref_conv2d_shape *s) {
    const Layout a = layout_of(s);
    const int64_t O = s->o / s->groups, taps = O * s->kh * s->kw;
    return gradref_planes_floats(&a.planes, O) + TILE_M * a.ld + gradref_round_up(s->c / s->groups, TILE_M) * taps +
           2 * (taps + s->kh * s->kw) + 5 * 16;
}

static int all_finite(const float *w, int64_t n) {
    float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
    for (int64_t q = 0; q < n; q++)
        sum += w[q] * 0.0f; /* NaN for an infinity or NaN */
    return sum == 0.0f;
}

/* The taps that exist and no others, row by row; ten times slower than the tile. */
GRADREF_CLONES
void gradref_conv2d_backward_input_rows(float *restrict dx, const float *restrict grad, const float *restrict weight,
                                        const gradref_conv2d_shape *s) {
    const int64_t C = s->c / s->groups, O = s->o / s->groups, K = s->kh * s->kw;
    for (int64_t q = 0; q < s->n * s->c * s->h * s->w; q++)
        dx[q] = 0.0f;
    for (int64_t n = 0; n < s->n; n++)
        for (int64_t o = 0; o < s->o; o++)
            for (int64_t c = 0; c < C; c++)
                for (int64_t t = 0; t < K; t++) {
                    const float k = weight[(o * C + c) * K + t];
                    const int64_t h0 = t / s->kw * s->dilation_h - s->pad_h, w0 = t % s->kw * s->dilation_w - s->pad_w;
                    const int64_t j0 = w0 < 0 ? gradref_ceil_div(-w0, s->stride_w) : 0;
                    const int64_t j1 = w0 < s->w ? gradref_min(s->ow, gradref_ceil_div(s->w - w0, s->stride_w)) : 0;
                    for (int64_t i = 0; i < s->oh; i++) {
                        const int64_t h = h0 + i * s->stride_h;
                        if (h < 0 || h >= s->h)
                            continue;
                        float *to = dx + ((n * s->c + o / O * C + c) * s->h + h) * s->w;
                        const float *from = grad + ((n * s->o + o) * s->oh + i) * s->ow;
                        for (int64_t j = j0; j < j1; j++)
                            to[w0 + j * s->stride_w] += k * from[j];
                    }
                }
}

/* How many of `kernel` taps meet this residue. */
static int64_t taps_of(int64_t residue, int64_t kernel, int64_t stride, int64_t dilation) {
    int64_t n = 0;
    for (int64_t k = 0; k < kernel; k++)
        n += k * dilation % stride == residue;
    return n;
}

/* Offsets and packed weights [C/8][tap][8] of one group for the taps (o, k, l) of residue (a, b); list has KH*KW
 * entries to itself. */
static void pack(int64_t *restrict offset, float *restrict packed, int64_t *restrict list, const float *restrict weight,
                 int64_t a, int64_t b, const gradref_conv2d_shape *s, const Layout *at) {
    const int64_t C = s->c / s->groups, O = s->o / s->groups, K = s->kh * s->kw;
    const int64_t down = residue_of(a, s->h, s->stride_h, s->pad_h).shift + at->h.zeros;
    const int64_t right = residue_of(b, s->w, s->stride_w, s->pad_w).shift + at->w.zeros;
    int64_t many = 0;
    for (int64_t t = 0; t < K; t++) {
        const int64_t k = t / s->kw * s->dilation_h, l = t % s->kw * s->dilation_w;
        if (k % s->stride_h == a && l % s->stride_w == b) {
            offset[many] = (down - k / s->stride_h) * at->planes.cols + right - l / s->stride_w;
            list[many++] = t;
        }
    }
    for (int64_t o = 0; o < O; o++) {
        for (int64_t q = 0; q < many; q++)
            offset[o * many + q] = offset[q] + o * at->planes.images * at->planes.size;
        for (int64_t c = 0; c < C; c++)
            for (int64_t q = 0; q < many; q++)
                packed[(c / TILE_M * O * many + o * many + q) * TILE_M + c % TILE_M] =
                    weight[(o * C + c) * K + list[q]];
    }
}

/* Residue (a, b) of dx for `images` images of one group; dx points at the group's first channel of the first. */
static void run(float *restrict dx, const float *restrict planes, const int64_t *restrict offset, int64_t taps,
                const float *restrict packed, int64_t a, int64_t b, int64_t images, const gradref_conv2d_shape *s,
                const Layout *at, float *restrict line) {
    const Residue h = residue_of(a, s->h, s->stride_h, s->pad_h), w = residue_of(b, s->w, s->stride_w, s->pad_w);
    const int64_t C = s->c / s->groups, size = at->planes.size, cols = at->planes.cols;
    const int64_t count = (images - 1) * size + (h.count - 1) * cols + w.count;
    const float start[TILE_M] = {0};
    if (h.count <= 0 || w.count <= 0)
        return;
    for (int64_t c = 0; c < C; c += TILE_M) {
        const int64_t many = gradref_min(TILE_M, C - c);
        if (taps)
            gradref_correlate(line, at->ld, planes, count, offset, taps, packed + c * taps, start, many);
        else /* a stride longer than the kernel: no output looks here */
            for (int64_t q = 0; q < many * at->ld; q++)
                line[q] = 0.0f;
        for (int64_t n = 0; n < images; n++)
            for (int64_t m = 0; m < many; m++)
                gradref_copy_rows(dx + ((n * s->c + c + m) * s->h + h.first) * s->w + w.first, s->stride_h * s->w,
                                  s->stride_w, line + m * at->ld + n * size, cols, h.count, w.count);
    }
}

void gradref_conv2d_backward_input(float *restrict dx, const float *restrict grad, const float *restrict weight,
                                   const gradref_conv2d_shape *s, float *restrict scratch) {
    const int64_t C = s->c / s->groups, O = s->o / s->groups, C8 = gradref_round_up(C, TILE_M);
    if (!all_finite(weight, s->o * C * s->kh * s->kw)) {
        gradref_conv2d_backward_input_rows(dx, grad, weight, s);
        return;
    }
    const Layout at = layout_of(s);
    const gradref_planes *p = &at.planes;
    int64_t *offset = (int64_t *)gradref_carve(&scratch, 2 * O * s->kh * s->kw);
    int64_t *list = (int64_t *)gradref_carve(&scratch, 2 * s->kh * s->kw);
    float *planes = gradref_carve(&scratch, gradref_planes_floats(p, O));
    float *packed = gradref_carve(&scratch, C8 * O * s->kh * s->kw);
    float *line = gradref_carve(&scratch, TILE_M * at.ld);

    for (int64_t g = 0; g < s->groups; g++)
        for (int64_t n = 0; n < s->n; n += p->images) {
            const int64_t images = gradref_min(p->images, s->n - n);
            int64_t done = 0; /* taps of the residues before this one; each tap belongs to one residue */
            for (int64_t q = 0; q < O * p->images; q++) {
                const int64_t o = q / p->images, b = gradref_min(q % p->images, images - 1);
                gradref_pad_plane(planes + q * p->size, p->rows, p->cols,
                                  grad + ((n + b) * s->o + g * O + o) * s->oh * s->ow, s->oh, s->ow, -at.h.zeros,
                                  -at.w.zeros, 1, 1);
            }
            for (int64_t q = 0; q < p->slack; q++)
                planes[O * p->images * p->size + q] = 0.0f;
            for (int64_t a = 0; a < s->stride_h; a++)
                for (int64_t b = 0; b < s->stride_w; b++) {
                    const int64_t taps = O * taps_of(a, s->kh, s->stride_h, s->dilation_h) *
                                         taps_of(b, s->kw, s->stride_w, s->dilation_w);
                    if (n == 0)
                        pack(offset + done, packed + C8 * done, list, weight + g * O * C * s->kh * s->kw, a, b, s, &at);
                    run(dx + (n * s->c + g * C) * s->h * s->w, planes, offset + done, taps, packed + C8 * done, a, b,
                        images, s, &at, line);
                    done += taps;
                }
        }
}
