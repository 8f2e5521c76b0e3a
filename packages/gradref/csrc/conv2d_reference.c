/* conv2d_reference.c: the convolution and its two gradients as plain loops, in the order of the formula.
 *
 * Read this first (PMPP chapter 16). It is slow and obvious: the oracle that the fast kernels are tested against, and
 * what RefBackend(algorithm="reference") runs. Letters as in gradref.h; i, j walk over the output, k, l over the
 * kernel. Where the window lies on padding, the value is a real zero and is multiplied like any other.
 * Next: tile.h, the loop that makes it fast.
 */
#include "gradref.h"

/* One entry of the zero-padded input. */
static inline float padded(const float *plane, const gradref_conv2d_shape *s, int64_t h, int64_t w) {
    return h >= 0 && h < s->h && w >= 0 && w < s->w ? plane[h * s->w + w] : 0.0f;
}

void gradref_conv2d_reference(float *restrict y, const float *restrict x, const float *restrict weight,
                              const float *restrict bias, const gradref_conv2d_shape *s) {
    const int64_t C = s->c / s->groups, O = s->o / s->groups; /* channels of one group */
    for (int64_t n = 0; n < s->n; n++)
        for (int64_t o = 0; o < s->o; o++)
            for (int64_t i = 0; i < s->oh; i++)
                for (int64_t j = 0; j < s->ow; j++) {
                    float sum = bias ? bias[o] : 0.0f;
                    for (int64_t c = 0; c < C; c++) {
                        const float *plane = x + (n * s->c + o / O * C + c) * s->h * s->w;
                        for (int64_t k = 0; k < s->kh; k++)
                            for (int64_t l = 0; l < s->kw; l++)
                                sum += weight[((o * C + c) * s->kh + k) * s->kw + l] *
                                       padded(plane, s, i * s->stride_h + k * s->dilation_h - s->pad_h,
                                              j * s->stride_w + l * s->dilation_w - s->pad_w);
                    }
                    y[((n * s->o + o) * s->oh + i) * s->ow + j] = sum;
                }
}

/* Every output sends its gradient back along each of its taps; what falls on padding is dropped. */
void gradref_conv2d_backward_input_reference(float *restrict dx, const float *restrict grad,
                                             const float *restrict weight, const gradref_conv2d_shape *s) {
    const int64_t C = s->c / s->groups, O = s->o / s->groups;
    for (int64_t q = 0; q < s->n * s->c * s->h * s->w; q++)
        dx[q] = 0.0f;
    for (int64_t n = 0; n < s->n; n++)
        for (int64_t o = 0; o < s->o; o++)
            for (int64_t i = 0; i < s->oh; i++)
                for (int64_t j = 0; j < s->ow; j++) {
                    const float g = grad[((n * s->o + o) * s->oh + i) * s->ow + j];
                    for (int64_t c = 0; c < C; c++) {
                        float *plane = dx + (n * s->c + o / O * C + c) * s->h * s->w;
                        for (int64_t k = 0; k < s->kh; k++)
                            for (int64_t l = 0; l < s->kw; l++) {
                                const int64_t h = i * s->stride_h + k * s->dilation_h - s->pad_h;
                                const int64_t w = j * s->stride_w + l * s->dilation_w - s->pad_w;
                                if (h >= 0 && h < s->h && w >= 0 && w < s->w)
                                    plane[h * s->w + w] += weight[((o * C + c) * s->kh + k) * s->kw + l] * g;
                            }
                    }
                }
}

void gradref_conv2d_backward_weight_reference(float *restrict dw, const float *restrict grad, const float *restrict x,
                                              const gradref_conv2d_shape *s) {
    const int64_t C = s->c / s->groups, O = s->o / s->groups;
    for (int64_t o = 0; o < s->o; o++)
        for (int64_t c = 0; c < C; c++)
            for (int64_t k = 0; k < s->kh; k++)
                for (int64_t l = 0; l < s->kw; l++) {
                    double sum = 0.0; /* the longest sum here: N*OH*OW terms, which float32 would blur */
                    for (int64_t n = 0; n < s->n; n++) {
                        const float *plane = x + (n * s->c + o / O * C + c) * s->h * s->w;
                        for (int64_t i = 0; i < s->oh; i++)
                            for (int64_t j = 0; j < s->ow; j++)
                                sum += (double)grad[((n * s->o + o) * s->oh + i) * s->ow + j] *
                                       padded(plane, s, i * s->stride_h + k * s->dilation_h - s->pad_h,
                                              j * s->stride_w + l * s->dilation_w - s->pad_w);
                    }
                    dw[((o * C + c) * s->kh + k) * s->kw + l] = (float)sum;
                }
}
