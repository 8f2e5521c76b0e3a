/* conv2d_relu_max_pool2d_reference.c: convolution, ReLU and max pool as one step, and its gradients, as plain loops.
 *
 * The answers are those of the three steps one after the other; only what the pool keeps is ever written. An index of
 * -1 says that ReLU closed the entry: it and everything that the pool did not choose contribute exactly nothing to a
 * gradient, not even zero times infinity. Letters as in gradref.h; i, j walk over the pool's output.
 * Next: conv2d_relu_max_pool2d.c.
 */
#include "gradref.h"

/* One output of the convolution. */
static float convolved(const float *x, const float *weight, float bias, const gradref_conv2d_shape *s, int64_t o,
                       int64_t row, int64_t col) {
    const int64_t C = s->c / s->groups, first = o / (s->o / s->groups) * C;
    float sum = bias;
    for (int64_t c = 0; c < C; c++)
        for (int64_t k = 0; k < s->kh; k++)
            for (int64_t l = 0; l < s->kw; l++) {
                const int64_t h = row * s->stride_h + k * s->dilation_h - s->pad_h;
                const int64_t w = col * s->stride_w + l * s->dilation_w - s->pad_w;
                const int inside = h >= 0 && h < s->h && w >= 0 && w < s->w;
                sum += weight[((o * C + c) * s->kh + k) * s->kw + l] *
                       (inside ? x[((first + c) * s->h + h) * s->w + w] : 0.0f);
            }
    return sum;
}

void gradref_conv2d_relu_max_pool2d_reference(float *restrict y, int32_t *restrict indices, const float *restrict x,
                                              const float *restrict weight, const float *restrict bias,
                                              const gradref_conv2d_shape *s, const gradref_pool2d_shape *pool) {
    for (int64_t n = 0; n < s->n; n++)
        for (int64_t o = 0; o < s->o; o++)
            for (int64_t i = 0; i < pool->oh; i++)
                for (int64_t j = 0; j < pool->ow; j++) {
                    float best = 0.0f;
                    int64_t at = -1;
                    for (int64_t k = 0; k < pool->kh; k++)
                        for (int64_t l = 0; l < pool->kw; l++) {
                            const int64_t h = i * pool->stride_h + k * pool->dilation_h - pool->pad_h;
                            const int64_t w = j * pool->stride_w + l * pool->dilation_w - pool->pad_w;
                            if (h < 0 || h >= s->oh || w < 0 || w >= s->ow)
                                continue;
                            const float v =
                                convolved(x + n * s->c * s->h * s->w, weight, bias ? bias[o] : 0.0f, s, o, h, w);
                            if (v > best || v != v) { /* the first best above 0 is the first maximum after ReLU */
                                best = v;
                                at = h * s->ow + w;
                            }
                        }
                    y[((n * s->o + o) * pool->oh + i) * pool->ow + j] = best;
                    indices[((n * s->o + o) * pool->oh + i) * pool->ow + j] = (int32_t)at;
                }
}

/* An open entry sends its gradient back along each tap; what falls on padding is dropped. */
int gradref_conv2d_relu_max_pool2d_backward_input_reference(float *restrict dx, const float *restrict grad,
                                                            const int32_t *restrict indices,
                                                            const float *restrict weight, const gradref_conv2d_shape *s,
                                                            int64_t pooled) {
    const int64_t C = s->c / s->groups, O = s->o / s->groups;
    int wrong = 0;
    for (int64_t q = 0; q < s->n * s->c * s->h * s->w; q++)
        dx[q] = 0.0f;
    for (int64_t n = 0; n < s->n; n++)
        for (int64_t o = 0; o < s->o; o++)
            for (int64_t q = (n * s->o + o) * pooled; q < (n * s->o + o + 1) * pooled; q++) {
                const int64_t at = indices[q];
                wrong |= at < -1 || at >= s->oh * s->ow;
                if (at < 0 || at >= s->oh * s->ow)
                    continue;
                for (int64_t c = 0; c < C; c++)
                    for (int64_t k = 0; k < s->kh; k++)
                        for (int64_t l = 0; l < s->kw; l++) {
                            const int64_t h = at / s->ow * s->stride_h + k * s->dilation_h - s->pad_h;
                            const int64_t w = at % s->ow * s->stride_w + l * s->dilation_w - s->pad_w;
                            if (h >= 0 && h < s->h && w >= 0 && w < s->w)
                                dx[((n * s->c + o / O * C + c) * s->h + h) * s->w + w] +=
                                    weight[((o * C + c) * s->kh + k) * s->kw + l] * grad[q];
                        }
            }
    return wrong;
}

/* dw[o][c][k][l] sums grad * the value under the tap, over all open entries. */
int gradref_conv2d_relu_max_pool2d_backward_weight_reference(float *restrict dw, const float *restrict grad,
                                                             const int32_t *restrict indices, const float *restrict x,
                                                             const gradref_conv2d_shape *s, int64_t pooled) {
    const int64_t C = s->c / s->groups, O = s->o / s->groups;
    int wrong = 0;
    for (int64_t o = 0; o < s->o; o++)
        for (int64_t c = 0; c < C; c++)
            for (int64_t k = 0; k < s->kh; k++)
                for (int64_t l = 0; l < s->kw; l++) {
                    float sum = 0.0f;
                    for (int64_t n = 0; n < s->n; n++) {
                        const float *plane = x + (n * s->c + o / O * C + c) * s->h * s->w;
                        for (int64_t q = (n * s->o + o) * pooled; q < (n * s->o + o + 1) * pooled; q++) {
                            const int64_t at = indices[q];
                            wrong |= at < -1 || at >= s->oh * s->ow;
                            if (at < 0 || at >= s->oh * s->ow)
                                continue;
                            const int64_t h = at / s->ow * s->stride_h + k * s->dilation_h - s->pad_h;
                            const int64_t w = at % s->ow * s->stride_w + l * s->dilation_w - s->pad_w;
                            const int inside = h >= 0 && h < s->h && w >= 0 && w < s->w;
                            sum += grad[q] * (inside ? plane[h * s->w + w] : 0.0f);
                        }
                    }
                    dw[((o * C + c) * s->kh + k) * s->kw + l] = sum;
                }
    return wrong;
}
