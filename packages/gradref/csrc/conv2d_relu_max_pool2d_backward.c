/* conv2d_relu_max_pool2d_backward.c: the gradients of convolution, ReLU and max pool as one step, fast.
 *
 * A dense gradient would be three quarters zeros behind a 2x2 pool, and more after ReLU; here only open entries are
 * walked over. For each image and output channel they are listed without a branch, then each one takes its window of x
 * into the sums of the weight gradient, or adds the kernel to its window of the input gradient: a few vector
 * operations an entry (patch.h). Windows of the pool that overlap list an entry twice; both count. The order is fixed.
 * Next: linear.c.
 */
#include "patch.h"

#include "tile.h"

/* What both gradients carve from the scratch. */
typedef struct {
    gradref_patch p;
    int64_t C, O, K, out;
    int64_t *offset, *tap, *start, *at;
    float *g, *image, *line, *channels; /* channels: [output channel][piece][16], sums or weights */
} Work;

static Work work_of(const gradref_conv2d_shape *s) {
    return (Work){.p = gradref_patch_of(s),
                  .C = s->c / s->groups,
                  .O = s->o / s->groups,
                  .K = s->kh * s->kw,
                  .out = s->oh * s->ow};
}

int64_t gradref_conv2d_relu_max_pool2d_backward_workspace(const gradref_conv2d_shape *s, int64_t pooled) {
    const Work k = work_of(s);
    return 2 * (k.p.pieces * (1 + LANES) + k.out + pooled + 2) + pooled + 1 + k.p.floats + gradref_patch_line(s) +
           k.O * k.p.pieces * LANES + 8 * 16;
}

static Work carve(const gradref_conv2d_shape *s, int64_t pooled, float *restrict scratch) {
    Work k = work_of(s);
    k.offset = (int64_t *)gradref_carve(&scratch, 2 * k.p.pieces);
    k.tap = (int64_t *)gradref_carve(&scratch, 2 * k.p.pieces * LANES);
    k.start = (int64_t *)gradref_carve(&scratch, 2 * (k.out + 1)) + 1;
    k.at = (int64_t *)gradref_carve(&scratch, 2 * (pooled + 1)); /* the list writes one place ahead */
    k.g = gradref_carve(&scratch, pooled + 1);
    k.image = gradref_carve(&scratch, k.p.floats);
    k.line = gradref_carve(&scratch, gradref_patch_line(s));
    k.channels = gradref_carve(&scratch, k.O * k.p.pieces * LANES);
    gradref_patch_tables(k.offset, k.tap, k.start, s, &k.p);
    return k;
}

int gradref_conv2d_relu_max_pool2d_backward_weight(float *restrict dw, const float *restrict grad,
                                                   const int32_t *restrict indices, const float *restrict x,
                                                   const gradref_conv2d_shape *s, int64_t pooled,
                                                   float *restrict scratch) {
    const Work k = carve(s, pooled, scratch);
    const int64_t floats = k.p.pieces * LANES;
    int wrong = 0;
    for (int64_t q = 0; q < k.p.floats; q++)
        k.image[q] = 0.0f; /* the padding */
    for (int64_t g = 0; g < s->groups; g++) {
        for (int64_t q = 0; q < k.O * floats; q++)
            k.channels[q] = 0.0f;
        for (int64_t n = 0; n < s->n; n++) {
            gradref_patch_fill(k.image, x + (n * s->c + g * k.C) * s->h * s->w, s, &k.p, k.line);
            for (int64_t o = 0; o < k.O; o++) {
                const int64_t from = (n * s->o + g * k.O + o) * pooled;
                const int64_t count =
                    gradref_patch_list(k.at, k.g, grad + from, indices + from, pooled, k.start, k.out, &wrong);
                if (count)
                    gradref_patch_gather(k.channels + o * floats, k.image, k.offset, k.p.pieces, k.at, k.g, count);
            }
        }
        for (int64_t o = 0; o < k.O; o++)
            for (int64_t q = 0; q < floats; q++)
                if (k.tap[q] >= 0)
                    dw[(g * k.O + o) * k.C * k.K + k.tap[q]] = k.channels[o * floats + q];
    }
    return wrong;
}

/* The same as gradref_patch_scatter, without the lanes that mean nothing. */
static void scatter_exactly(const Work *k, int64_t o, int64_t count) {
    for (int64_t e = 0; e < count; e++)
        for (int64_t q = 0; q < k->p.pieces * LANES; q++)
            if (k->tap[q] >= 0)
                k->image[k->at[e] + k->offset[q / LANES] + q % LANES] +=
                    k->g[e] * k->channels[o * k->p.pieces * LANES + q];
}

static int all_finite(const float *g, int64_t count) {
    float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
    for (int64_t e = 0; e < count; e++)
        sum += g[e] * 0.0f; /* NaN for an infinity or NaN */
    return sum == 0.0f;
}

int gradref_conv2d_relu_max_pool2d_backward_input(float *restrict dx, const float *restrict grad,
                                                  const int32_t *restrict indices, const float *restrict weight,
                                                  const gradref_conv2d_shape *s, int64_t pooled,
                                                  float *restrict scratch) {
    const Work k = carve(s, pooled, scratch);
    const int64_t floats = k.p.pieces * LANES;
    const int whole = k.p.run % LANES == 0; /* else the last piece adds g * 0 to its neighbours: no infinite g there */
    int wrong = 0;
    for (int64_t g = 0; g < s->groups; g++) {
        for (int64_t o = 0; o < k.O; o++)
            for (int64_t q = 0; q < floats; q++)
                k.channels[o * floats + q] = k.tap[q] < 0 ? 0.0f : weight[(g * k.O + o) * k.C * k.K + k.tap[q]];
        for (int64_t n = 0; n < s->n; n++) {
            for (int64_t q = 0; q < k.p.floats; q++)
                k.image[q] = 0.0f;
            for (int64_t o = 0; o < k.O; o++) {
                const int64_t from = (n * s->o + g * k.O + o) * pooled;
                const int64_t count =
                    gradref_patch_list(k.at, k.g, grad + from, indices + from, pooled, k.start, k.out, &wrong);
                if (count && (whole || all_finite(k.g, count)))
                    gradref_patch_scatter(k.image, k.channels + o * floats, k.offset, k.p.pieces, k.at, k.g, count);
                else
                    scatter_exactly(&k, o, count);
            }
            gradref_patch_empty(dx + (n * s->c + g * k.C) * s->h * s->w, k.image, s, &k.p, k.line);
        }
    }
    return wrong;
}

/* db[o] sums the open entries of grad: each plane in float lanes, the planes in double, so as good as pairwise. */
GRADREF_CLONES
void gradref_conv2d_relu_max_pool2d_backward_bias(float *restrict db, const float *restrict grad,
                                                  const int32_t *restrict indices, int64_t n, int64_t o,
                                                  int64_t pooled) {
    for (int64_t c = 0; c < o; c++) {
        double total = 0.0;
        for (int64_t image = 0; image < n; image++)
            for (int64_t first = 0; first < pooled; first += 256) {
                const int64_t from = (image * o + c) * pooled + first, count = gradref_min(256, pooled - first);
                float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
                for (int64_t q = 0; q < count; q++)
                    sum += indices[from + q] >= 0 ? grad[from + q] : 0.0f;
                total += sum;
            }
        db[c] = (float)total;
    }
}
