/* plane.h: zero-padded planes, in which a convolution has no edges.
 *
 * A padded plane is one flat line: output position p = i*cols + j reads tap t at line[offset[t] + p]. The zeros right
 * of a row are the zeros left of the next one, and those below an image are those above the next, so little is
 * wasted. Columns from OW to cols are junk that is computed and never copied out.
 * With a stride, a plane is split into phases (rows and columns of equal residue), so that taps stay unit stride.
 * Next: correlate.c, which runs the tile over such lines.
 */
#ifndef GRADREF_PLANE_H
#define GRADREF_PLANE_H

#include "gradref.h"

/* Layout of a scratch buffer [channel][phase_h][phase_w][image][rows][cols], then `slack` zeros. */
typedef struct {
    int64_t rows, cols, size; /* size = rows * cols */
    int64_t images;           /* this many images share a line: tiny planes would not fill a tile */
    int64_t phases_h, phases_w, period_h, period_w;
    int64_t slack; /* the last tile reads past the last plane, and the last image needs zeros below it */
} gradref_planes;

/* Where the forward convolution and the weight gradient read x. */
gradref_planes gradref_input_planes(const gradref_conv2d_shape *s);

/* Number of floats of the whole buffer. */
int64_t gradref_planes_floats(const gradref_planes *p, int64_t channels);

/* offset[(c*KH + kh)*KW + kw]: where that tap of output position 0 lies. */
void gradref_input_offsets(int64_t *restrict offset, const gradref_conv2d_shape *s, const gradref_planes *p);

/* Copy `channels` channels of `images` images into padded planes; x points at the first channel of the first image. */
void gradref_pad_input(float *restrict line, const float *restrict x, int64_t channels, int64_t images,
                       const gradref_conv2d_shape *s, const gradref_planes *p);

/* One plane: line[i][j] = src[h0 + i*step_h][w0 + j*step_w], zero where that lies outside the h x w source. */
void gradref_pad_plane(float *restrict line, int64_t rows, int64_t cols, const float *restrict src, int64_t h,
                       int64_t w, int64_t h0, int64_t w0, int64_t step_h, int64_t step_w);

/* dst[i*dst_ld + j*dst_step] = src[i*src_ld + j]: a line without its junk columns. */
void gradref_copy_rows(float *restrict dst, int64_t dst_ld, int64_t dst_step, const float *restrict src, int64_t src_ld,
                       int64_t rows, int64_t cols);

/* line[p*16 + k] = src[k*ld + p] for p < count and k < channels; the other k < 16 repeat the last channel, whose copies
 * are computed with and never looked at. */
void gradref_channels_last(float *restrict line, const float *restrict src, int64_t ld, int64_t channels,
                           int64_t count);

/* weight (M, taps) -> packed [M/8][tap][8]; the places of channels beyond M stay as they are. */
void gradref_pack(float *restrict packed, const float *restrict weight, int64_t M, int64_t taps);

/* y[m*ld + p] = start[m] + sum over t of w[t*8 + m] * x[offset[t] + p] for m < M <= 8, p < count; taps >= 1.
 * Writes y up to the next multiple of 48 positions, and reads x as far. */
void gradref_correlate(float *restrict y, int64_t ld, const float *restrict x, int64_t count,
                       const int64_t *restrict offset, int64_t taps, const float *restrict w,
                       const float *restrict start, int64_t M);

/* Does the clone that runs have AVX-512, with its 32 registers of 16 floats? */
static inline int gradref_wide(void) {
#if defined(GRADREF_FORCE_ARCH)
    const char name[] = GRADREF_NAME(GRADREF_FORCE_ARCH);
    return sizeof(name) == sizeof("x86-64-v4") && name[sizeof(name) - 2] == '4';
#elif defined(GRADREF_HAVE_CLONES)
    return __builtin_cpu_supports("avx512vl") != 0;
#else
    return 0;
#endif
}

static inline int64_t gradref_min(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t gradref_max(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t gradref_ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; } /* a >= 0 */
static inline int64_t gradref_round_up(int64_t a, int64_t b) { return gradref_ceil_div(a, b) * b; }

/* Take `floats` floats from a scratch buffer; every piece starts at a cache line if the buffer does. */
static inline float *gradref_carve(float *restrict *scratch, int64_t floats) {
    float *piece = *scratch;
    *scratch += gradref_round_up(floats, 16);
    return piece;
}

#endif
