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

#ifdef __cplusplus
}
#endif
#endif
