/* patch.h: windows of a convolution as pieces of 16 neighbouring floats, for gradients that have few entries.
 *
 * Behind a max pool at most one output of a window has a gradient, and after ReLU fewer. So the gradients walk over
 * those entries, and each one needs its window of x. In a zero-padded image whose channels are innermost, [block of
 * channels][row][column][lane], that window is KH runs of KW*lanes neighbouring floats: a few whole vectors.
 * lanes is 16, or C where there are fewer (then the last piece of a run has lanes that mean nothing).
 * Next: patch.c, then conv2d_relu_max_pool2d_backward.c.
 */
#ifndef GRADREF_PATCH_H
#define GRADREF_PATCH_H

#include "plane.h"

/* The image of one group's channels. */
typedef struct {
    int64_t lanes, blocks;      /* channels of a pixel, blocks of so many channels */
    int64_t rows, cols, pixels; /* of the padded image; pixels = rows * cols, rounded up to 16 */
    int64_t run, run_pieces;    /* neighbouring floats of a window, and the pieces that cover them */
    int64_t pieces;             /* of a whole window */
    int64_t floats;             /* all blocks, and the slack that the last piece may touch */
} gradref_patch;

gradref_patch gradref_patch_of(const gradref_conv2d_shape *s);

/* Floats of the scratch that fill and empty need. */
int64_t gradref_patch_line(const gradref_conv2d_shape *s);

/* offset[piece]: where it lies, seen from the window's corner. tap[piece*16 + lane]: the entry of weight (C, KH, KW)
 * that meets this float, -1 for none. start[q]: the corner of the window of output q, q < OH*OW;
 * start[-1], which must exist, becomes 0. */
void gradref_patch_tables(int64_t *restrict offset, int64_t *restrict tap, int64_t *restrict start,
                          const gradref_conv2d_shape *s, const gradref_patch *p);

/* x (C, H, W) to the image, whose padding must be zero already; and the image without its padding to dx. */
void gradref_patch_fill(float *restrict image, const float *restrict x, const gradref_conv2d_shape *s,
                        const gradref_patch *p, float *restrict line);
void gradref_patch_empty(float *restrict dx, const float *restrict image, const gradref_conv2d_shape *s,
                         const gradref_patch *p, float *restrict line);

/* The open entries of one pooled plane: at[e], the corner of its window, and g[e]. Returns how many; both lists need
 * room for `pooled`. *wrong becomes 1 for an index outside the output plane. */
int64_t gradref_patch_list(int64_t *restrict at, float *restrict g, const float *restrict grad,
                           const int32_t *restrict indices, int64_t pooled, const int64_t *restrict start, int64_t out,
                           int *wrong);

/* sums[piece][16] += g[e] * window of entry e, over all entries. */
void gradref_patch_gather(float *restrict sums, const float *restrict image, const int64_t *restrict offset,
                          int64_t pieces, const int64_t *restrict at, const float *restrict g, int64_t count);

/* Window of entry e += g[e] * w[piece][16], entry after entry. */
void gradref_patch_scatter(float *restrict image, const float *restrict w, const int64_t *restrict offset,
                           int64_t pieces, const int64_t *restrict at, const float *restrict g, int64_t count);

#endif
