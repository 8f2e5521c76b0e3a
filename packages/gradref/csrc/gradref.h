/* gradref.h: every kernel of the package and the contract they share.
 *
 * Arrays are float32, NCHW, row-major, without gaps. Every output is overwritten; no output overlaps an input.
 * Indices of a max pool are int32, flat in the H*W plane. One thread; equal inputs give equal bits.
 * Kernels allocate nothing: scratch comes from the caller, `..._workspace` says how many floats. Arguments are trusted
 * (bindings.cpp checks them): sizes fit, strides and dilations are at least 1, N may be 0.
 * Next: conv2d_reference.c, the convolution as the book writes it.
 */
#ifndef GRADREF_H
#define GRADREF_H

#include <stdint.h>

#ifdef __cplusplus
#define GRADREF_RESTRICT
extern "C" {
#else
#define GRADREF_RESTRICT restrict
#endif

/* GRADREF_CLONES stands before a kernel: the compiler makes one version for each instruction set, and the loader
 * takes the best the CPU has. -DGRADREF_FORCE_ARCH=x86-64-v3 makes one version only (tests, benchmarks);
 * -DGRADREF_NO_CLONES, or a compiler without the attribute, leaves plain code. */
#if defined(GRADREF_FORCE_ARCH)
#define GRADREF_NAME_(arch) #arch
#define GRADREF_NAME(arch) GRADREF_NAME_(arch)
#define GRADREF_CLONES __attribute__((target("arch=" GRADREF_NAME(GRADREF_FORCE_ARCH))))
#elif defined(GRADREF_HAVE_CLONES)
#define GRADREF_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define GRADREF_CLONES
#endif

/* x (n, c, h, w), weight (o, c / groups, kh, kw), y (n, o, oh, ow). */
typedef struct {
    int64_t n, c, h, w;
    int64_t o, kh, kw;
    int64_t oh, ow;
    int64_t stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w, groups;
} gradref_conv2d_shape;

/* x (planes, h, w), y (planes, oh, ow); planes = N*C. A window may hang over the lower and right edge, but holds at
 * least one entry of the input. h*w fits an int32. */
typedef struct {
    int64_t planes, h, w;
    int64_t kh, kw;
    int64_t oh, ow;
    int64_t stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w;
} gradref_pool2d_shape;

/* Convolution (really cross-correlation, no flip). Infinities and NaN: the padding is made of real zeros, so an
 * infinite weight, or in backward_weight an infinite grad, on padding gives NaN. backward_input sums over the
 * existing outputs only. Reference and fast kernels agree in this.
 *     y[n][o][i][j]  = bias[o] + sum over c, k, l of weight[o][c][k][l] * x[n][c][i*stride + k*dilation - pad][...]
 * bias may be NULL. */
void gradref_conv2d_reference(float *GRADREF_RESTRICT y, const float *GRADREF_RESTRICT x,
                              const float *GRADREF_RESTRICT weight, const float *GRADREF_RESTRICT bias,
                              const gradref_conv2d_shape *s);
void gradref_conv2d_backward_input_reference(float *GRADREF_RESTRICT dx, const float *GRADREF_RESTRICT grad,
                                             const float *GRADREF_RESTRICT weight, const gradref_conv2d_shape *s);
void gradref_conv2d_backward_weight_reference(float *GRADREF_RESTRICT dw, const float *GRADREF_RESTRICT grad,
                                              const float *GRADREF_RESTRICT x, const gradref_conv2d_shape *s);

int64_t gradref_conv2d_workspace(const gradref_conv2d_shape *s);
void gradref_conv2d(float *GRADREF_RESTRICT y, const float *GRADREF_RESTRICT x, const float *GRADREF_RESTRICT weight,
                    const float *GRADREF_RESTRICT bias, const gradref_conv2d_shape *s, float *GRADREF_RESTRICT scratch);

int64_t gradref_conv2d_backward_input_workspace(const gradref_conv2d_shape *s);
void gradref_conv2d_backward_input(float *GRADREF_RESTRICT dx, const float *GRADREF_RESTRICT grad,
                                   const float *GRADREF_RESTRICT weight, const gradref_conv2d_shape *s,
                                   float *GRADREF_RESTRICT scratch);

int64_t gradref_conv2d_backward_weight_workspace(const gradref_conv2d_shape *s);
void gradref_conv2d_backward_weight(float *GRADREF_RESTRICT dw, const float *GRADREF_RESTRICT grad,
                                    const float *GRADREF_RESTRICT x, const gradref_conv2d_shape *s,
                                    float *GRADREF_RESTRICT scratch);

/* Max pool: y and the index of the window's last NaN, else of its first maximum in row-major order.
 * backward: each index must lie in its own window, as forward writes it. Returns 1 if one lies outside its plane (it
 * is skipped), else 0. */
void gradref_max_pool2d_reference(float *GRADREF_RESTRICT y, int32_t *GRADREF_RESTRICT indices,
                                  const float *GRADREF_RESTRICT x, const gradref_pool2d_shape *s);
int gradref_max_pool2d_backward_reference(float *GRADREF_RESTRICT dx, const float *GRADREF_RESTRICT grad,
                                          const int32_t *GRADREF_RESTRICT indices, const gradref_pool2d_shape *s);
void gradref_max_pool2d(float *GRADREF_RESTRICT y, int32_t *GRADREF_RESTRICT indices, const float *GRADREF_RESTRICT x,
                        const gradref_pool2d_shape *s);
int gradref_max_pool2d_backward(float *GRADREF_RESTRICT dx, const float *GRADREF_RESTRICT grad,
                                const int32_t *GRADREF_RESTRICT indices, const gradref_pool2d_shape *s);

/* Average pool: the sum of the window's entries divided by the entries that lie within the padded input
 * (count_include_pad) or within the input alone. Dilation is 1. */
void gradref_avg_pool2d_reference(float *GRADREF_RESTRICT y, const float *GRADREF_RESTRICT x,
                                  const gradref_pool2d_shape *s, int count_include_pad);
void gradref_avg_pool2d_backward_reference(float *GRADREF_RESTRICT dx, const float *GRADREF_RESTRICT grad,
                                           const gradref_pool2d_shape *s, int count_include_pad);
void gradref_avg_pool2d(float *GRADREF_RESTRICT y, const float *GRADREF_RESTRICT x, const gradref_pool2d_shape *s,
                        int count_include_pad);
void gradref_avg_pool2d_backward(float *GRADREF_RESTRICT dx, const float *GRADREF_RESTRICT grad,
                                 const gradref_pool2d_shape *s, int count_include_pad);

/* Convolution, ReLU and max pool as one step. pool has the convolution's output (oh, ow) as its input; its planes are
 * not looked at. indices: where the winner lies in that OH*OW plane, or -1 where ReLU closed it (y <= 0, not NaN).
 * Forward: NaN and infinities as the three steps give them. Backward: pooled = pool oh * pool ow; an entry that is
 * closed or was not chosen contributes exactly nothing, one that several windows chose counts for each. Returns 1 if an
 * index lies outside its plane (it is skipped), else 0. */
void gradref_conv2d_relu_max_pool2d_reference(float *GRADREF_RESTRICT y, int32_t *GRADREF_RESTRICT indices,
                                              const float *GRADREF_RESTRICT x, const float *GRADREF_RESTRICT weight,
                                              const float *GRADREF_RESTRICT bias, const gradref_conv2d_shape *s,
                                              const gradref_pool2d_shape *pool);
int gradref_conv2d_relu_max_pool2d_backward_input_reference(float *GRADREF_RESTRICT dx,
                                                            const float *GRADREF_RESTRICT grad,
                                                            const int32_t *GRADREF_RESTRICT indices,
                                                            const float *GRADREF_RESTRICT weight,
                                                            const gradref_conv2d_shape *s, int64_t pooled);
int gradref_conv2d_relu_max_pool2d_backward_weight_reference(float *GRADREF_RESTRICT dw,
                                                             const float *GRADREF_RESTRICT grad,
                                                             const int32_t *GRADREF_RESTRICT indices,
                                                             const float *GRADREF_RESTRICT x,
                                                             const gradref_conv2d_shape *s, int64_t pooled);

int64_t gradref_conv2d_relu_max_pool2d_workspace(const gradref_conv2d_shape *s, const gradref_pool2d_shape *pool);
void gradref_conv2d_relu_max_pool2d(float *GRADREF_RESTRICT y, int32_t *GRADREF_RESTRICT indices,
                                    const float *GRADREF_RESTRICT x, const float *GRADREF_RESTRICT weight,
                                    const float *GRADREF_RESTRICT bias, const gradref_conv2d_shape *s,
                                    const gradref_pool2d_shape *pool, float *GRADREF_RESTRICT scratch);

int64_t gradref_conv2d_relu_max_pool2d_backward_workspace(const gradref_conv2d_shape *s, int64_t pooled);
int gradref_conv2d_relu_max_pool2d_backward_input(float *GRADREF_RESTRICT dx, const float *GRADREF_RESTRICT grad,
                                                  const int32_t *GRADREF_RESTRICT indices,
                                                  const float *GRADREF_RESTRICT weight, const gradref_conv2d_shape *s,
                                                  int64_t pooled, float *GRADREF_RESTRICT scratch);
int gradref_conv2d_relu_max_pool2d_backward_weight(float *GRADREF_RESTRICT dw, const float *GRADREF_RESTRICT grad,
                                                   const int32_t *GRADREF_RESTRICT indices,
                                                   const float *GRADREF_RESTRICT x, const gradref_conv2d_shape *s,
                                                   int64_t pooled, float *GRADREF_RESTRICT scratch);
void gradref_conv2d_relu_max_pool2d_backward_bias(float *GRADREF_RESTRICT db, const float *GRADREF_RESTRICT grad,
                                                  const int32_t *GRADREF_RESTRICT indices, int64_t n, int64_t o,
                                                  int64_t pooled);

/* Linear: x (n, in), weight (out, in), y and grad (n, out); bias may be NULL. relu: y = max(y, 0), a NaN stays. */
void gradref_linear_reference(float *GRADREF_RESTRICT y, const float *GRADREF_RESTRICT x,
                              const float *GRADREF_RESTRICT weight, const float *GRADREF_RESTRICT bias, int64_t n,
                              int64_t in, int64_t out, int relu);
void gradref_linear_backward_input_reference(float *GRADREF_RESTRICT dx, const float *GRADREF_RESTRICT grad,
                                             const float *GRADREF_RESTRICT weight, int64_t n, int64_t in, int64_t out);
void gradref_linear_backward_weight_reference(float *GRADREF_RESTRICT dw, const float *GRADREF_RESTRICT grad,
                                              const float *GRADREF_RESTRICT x, int64_t n, int64_t in, int64_t out);

int64_t gradref_linear_workspace(void);
void gradref_linear(float *GRADREF_RESTRICT y, const float *GRADREF_RESTRICT x, const float *GRADREF_RESTRICT weight,
                    const float *GRADREF_RESTRICT bias, int64_t n, int64_t in, int64_t out, int relu,
                    float *GRADREF_RESTRICT scratch);
void gradref_linear_backward_input(float *GRADREF_RESTRICT dx, const float *GRADREF_RESTRICT grad,
                                   const float *GRADREF_RESTRICT weight, int64_t n, int64_t in, int64_t out,
                                   float *GRADREF_RESTRICT scratch);
void gradref_linear_backward_weight(float *GRADREF_RESTRICT dw, const float *GRADREF_RESTRICT grad,
                                    const float *GRADREF_RESTRICT x, int64_t n, int64_t in, int64_t out,
                                    float *GRADREF_RESTRICT scratch);

/* Elementwise: y = max(x, 0); dx = grad, and 0 where y <= 0; sums[k] = sum of x[:, k] of x (n, c, plane). */
void gradref_relu(float *GRADREF_RESTRICT y, const float *GRADREF_RESTRICT x, int64_t n);
void gradref_relu_backward(float *GRADREF_RESTRICT dx, const float *GRADREF_RESTRICT grad,
                           const float *GRADREF_RESTRICT y, int64_t n);
void gradref_channel_sum(float *GRADREF_RESTRICT sums, const float *GRADREF_RESTRICT x, int64_t n, int64_t c,
                         int64_t plane);

/* g += decay*p; v = momentum*v + kept*g; p -= rate * (nesterov ? g + momentum*v : v). v NULL: p -= rate*g. */
void gradref_sgd(float *GRADREF_RESTRICT p, const float *GRADREF_RESTRICT grad, float *GRADREF_RESTRICT v, int64_t n,
                 float rate, float momentum, float kept, float decay, int nesterov);

/* g += decay*p; m = beta1*m + rest1*g; v = beta2*v + rest2*g*g; p = kept*p - size*m / (root*sqrt(v) + eps). */
typedef struct {
    float beta1, rest1, beta2, rest2, size, root, eps, kept, decay;
} gradref_adam_step;
void gradref_adam(float *GRADREF_RESTRICT p, const float *GRADREF_RESTRICT grad, float *GRADREF_RESTRICT m,
                  float *GRADREF_RESTRICT v, int64_t n, const gradref_adam_step *s);

/* Logits (n, classes), classes at least 1. loss: one number, or n with GRADREF_NONE; a mean is over the rows that are
 * not ignored. Returns 1, having written nothing, for a label that is neither a class nor `ignore`, else 0.
 * backward: grad like loss; ignored rows are 0. */
enum { GRADREF_NONE, GRADREF_SUM, GRADREF_MEAN };
int gradref_softmax_cross_entropy(float *GRADREF_RESTRICT loss, float *GRADREF_RESTRICT log_probs,
                                  const float *GRADREF_RESTRICT logits, const int64_t *GRADREF_RESTRICT labels,
                                  int64_t n, int64_t classes, int64_t ignore, int reduction);
void gradref_softmax_cross_entropy_backward(float *GRADREF_RESTRICT dx, const float *GRADREF_RESTRICT grad,
                                            const float *GRADREF_RESTRICT log_probs,
                                            const int64_t *GRADREF_RESTRICT labels, int64_t n, int64_t classes,
                                            int64_t ignore, int reduction);

#ifdef __cplusplus
}
#endif
#endif
