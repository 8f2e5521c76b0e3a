/* conv2d_backward_weight.c: the gradient of a convolution's weight, fast.
 *
 * dw[o][c][k][l] sums grad[o] * x[c] over all positions. The sums stay in registers while the positions pass, and the
 * vector lanes are channels, never positions, so nothing has to be added up across lanes. Three choices of lanes:
 * output channels (outer products grad x x), input channels (the same, roles exchanged), groups (depthwise and its
 * kin, lane by lane). The one that leaves the fewest lanes empty is taken. Sums of a chunk of positions are added to
 * the total in order: as accurate as blocked summation, and the same bits each time.
 * Next: max_pool2d.c.
 */
#include "plane.h"

#include "tile.h"

enum { CHUNK_FLOATS = 24 * 1024, CHUNK_MIN = 64, CHUNK_MAX = 1024 };
enum Form { BY_OUTPUTS, BY_INPUTS, BY_GROUPS };

/* Sizes of one group, and pointers into the scratch buffer. */
typedef struct {
    enum Form form;
    int64_t C, O, K, out; /* channels of one group, taps of one channel, positions of one image */
    int64_t chunk;        /* positions that pass at a time */
    int64_t x_ld;         /* floats from one channel's planes to the next's */
    int64_t x_channels, blocks, lanes_floats, sums_floats;
    gradref_planes p;
    int64_t *offset, *x_at, *g_at, *count_up; /* see at_chunk */
    int64_t at_first, at_count;               /* the chunk that those tables describe */
    float *planes, *lanes, *x_lanes, *sums;
} Work;

static Work work_of(const gradref_conv2d_shape *s) {
    Work k = {.C = s->c / s->groups, .O = s->o / s->groups, .K = s->kh * s->kw, .out = s->oh * s->ow, .at_first = -1};
    const int64_t by_outputs = gradref_round_up(k.O, LANES) * k.C * s->groups;
    const int64_t by_inputs = gradref_round_up(k.C, LANES) * k.O * s->groups;
    const int64_t by_groups = gradref_round_up(s->groups, LANES) * k.C * k.O;
    k.form = by_outputs <= by_inputs && by_outputs <= by_groups ? BY_OUTPUTS
             : by_inputs <= by_groups                           ? BY_INPUTS
                                                                : BY_GROUPS;
    k.p = gradref_input_planes(s);
    k.x_ld = k.p.phases_h * k.p.phases_w * k.p.images * k.p.size;
    k.x_channels = k.form == BY_GROUPS ? gradref_min(LANES, s->groups) * k.C : k.C;
    /* blocks of 16 lanes of grad; for BY_INPUTS grad is read as it is */
    k.blocks = k.form == BY_OUTPUTS ? gradref_ceil_div(k.O, LANES) : k.form == BY_GROUPS ? k.O : 0;
    k.chunk = gradref_max(CHUNK_MIN, gradref_min(CHUNK_MAX, CHUNK_FLOATS / gradref_max(1, k.blocks * LANES)));
    k.chunk = gradref_min(k.chunk, k.p.images * k.out);
    const int64_t x_blocks = k.form == BY_INPUTS ? gradref_ceil_div(k.C, LANES) : k.form == BY_GROUPS ? k.C : 0;
    k.lanes_floats = x_blocks ? (x_blocks * k.x_ld + k.p.slack) * LANES : 0;
    k.sums_floats = (k.form == BY_OUTPUTS  ? k.blocks * k.C
                     : k.form == BY_INPUTS ? x_blocks * k.O
                                           : k.C * k.O) *
                    k.K * LANES;
    return k;
}

int64_t gradref_conv2d_backward_weight_workspace(const gradref_conv2d_shape *s) {
    const Work k = work_of(s);
    return 2 * (k.C * k.K + k.O + 3 * k.chunk) + gradref_planes_floats(&k.p, k.x_channels) +
           k.blocks * k.chunk * LANES + k.lanes_floats + k.sums_floats + 8 * 16;
}

/* All scalars of an outer product, in blocks of equal size. */
ALWAYS_INLINE void outer(const int B, float *restrict sums, int64_t ld, int64_t scalars, const float *restrict a,
                         const int64_t *restrict offset, const int64_t *restrict a_at, const float *restrict v,
                         int64_t v_ld, const int64_t *restrict v_at, int64_t count) {
    const int64_t most = gradref_wide() ? TILE_S : TILE_S / 2;
    const int64_t block = gradref_ceil_div(scalars, gradref_ceil_div(scalars, most));
    for (int64_t t = 0; t < scalars; t += block, sums += block * LANES, offset += block)
        switch (gradref_min(block, scalars - t)) {
#define CASE(S)                                                                                                        \
    case S:                                                                                                            \
        tile_outer(S, B, sums, ld, a, offset, a_at, v, v_ld, v_at, count);                                             \
        break
            CASE(1);
            CASE(2);
            CASE(3);
            CASE(4);
            CASE(5);
            CASE(6);
            CASE(7);
            CASE(8);
            CASE(9);
            CASE(10);
            CASE(11);
            CASE(12);
#undef CASE
        }
}

/* sums[block][scalar][16] += outer product over a chunk of positions, for all blocks of lanes. */
GRADREF_CLONES
void gradref_outer(float *restrict sums, int64_t scalars, const float *restrict a, const int64_t *restrict offset,
                   const int64_t *restrict a_at, const float *restrict v, int64_t v_ld, const int64_t *restrict v_at,
                   int64_t blocks, int64_t sums_ld, int64_t count) {
    for (; blocks >= 2 && gradref_wide(); blocks -= 2, v += 2 * v_ld, sums += 2 * sums_ld)
        outer(2, sums, sums_ld, scalars, a, offset, a_at, v, v_ld, v_at, count);
    for (; blocks > 0; blocks--, v += v_ld, sums += sums_ld)
        outer(1, sums, sums_ld, scalars, a, offset, a_at, v, v_ld, v_at, count);
}

/* sums[scalar][16] += u * v lane by lane, for `scalars` shifts of u. */
GRADREF_CLONES
void gradref_lanes(float *restrict sums, int64_t scalars, const float *restrict u, const int64_t *restrict offset,
                   const int64_t *restrict u_at, const float *restrict v, int64_t count) {
    for (; scalars >= 9 && gradref_wide(); scalars -= 9, sums += 9 * LANES, offset += 9)
        tile_lanes(9, sums, u, offset, u_at, v, count);
    for (; scalars >= 3; scalars -= 3, sums += 3 * LANES, offset += 3)
        tile_lanes(3, sums, u, offset, u_at, v, count);
    for (; scalars > 0; scalars--, sums += LANES, offset++)
        tile_lanes(1, sums, u, offset, u_at, v, count);
}

/* Positions first to first + count of the block of images: where x and grad have them, and 0, 1, 2, ... */
static void at_chunk(Work *k, const gradref_conv2d_shape *s, int64_t first, int64_t count) {
    if (first == k->at_first && count == k->at_count)
        return;
    k->at_first = first;
    k->at_count = count;
    int64_t image = first / k->out, i = first % k->out / s->ow, j = first % s->ow;
    for (int64_t p = 0; p < count; p++) {
        k->x_at[p] = image * k->p.size + i * k->p.cols + j;
        k->g_at[p] = image * s->o * k->out + i * s->ow + j;
        k->count_up[p] = p;
        if (++j == s->ow) {
            j = 0;
            if (++i == s->oh) {
                i = 0;
                image++;
            }
        }
    }
}

/* lanes[p][16] = grad of `many` channels, `step` channels apart, at the chunk's positions. */
static void grad_lanes(float *restrict lanes, const float *restrict grad, int64_t step, int64_t many, const Work *k,
                       const gradref_conv2d_shape *s, int64_t first, int64_t count) {
    for (int64_t p = 0; p < count;) { /* a chunk may span several images */
        const int64_t image = (first + p) / k->out, q = (first + p) % k->out;
        const int64_t here = gradref_min(count - p, k->out - q);
        gradref_channels_last(lanes + p * LANES, grad + image * s->o * k->out + q, step * k->out, many, here);
        p += here;
    }
}

/* One chunk of positions. grad points at the first channel of the group (or of the sixteen groups). */
static void chunk(Work *k, const gradref_conv2d_shape *s, const float *restrict grad, int64_t groups, int64_t first,
                  int64_t count) {
    const int64_t K = k->K, ld = k->chunk * LANES;
    at_chunk(k, s, first, count);
    if (k->form == BY_OUTPUTS) {
        for (int64_t b = 0; b < k->blocks; b++)
            grad_lanes(k->lanes + b * ld, grad + b * LANES * k->out, 1, gradref_min(LANES, k->O - b * LANES), k, s,
                       first, count);
        gradref_outer(k->sums, k->C * K, k->planes, k->offset, k->x_at, k->lanes, ld, k->count_up, k->blocks,
                      k->C * K * LANES, count);
    } else if (k->form == BY_INPUTS) {
        const int64_t blocks = gradref_ceil_div(k->C, LANES), sums_ld = K * k->O * LANES;
        for (int64_t t = 0; t < K; t++)
            gradref_outer(k->sums + t * k->O * LANES, k->O, grad, k->offset + K, k->g_at,
                          k->x_lanes + k->offset[t] * LANES, k->x_ld * LANES, k->x_at, blocks, sums_ld, count);
    } else {
        for (int64_t o = 0; o < k->O; o++) {
            grad_lanes(k->lanes, grad + o * k->out, k->O, groups, k, s, first, count);
            for (int64_t c = 0; c < k->C; c++)
                gradref_lanes(k->sums + (o * k->C + c) * K * LANES, K, k->x_lanes + c * k->x_ld * LANES, k->offset,
                              k->x_at, k->lanes, count);
        }
    }
}

/* The sums of one group (or sixteen) to dw. */
static void store(const Work *k, float *restrict dw, int64_t groups) {
    const int64_t C = k->C, O = k->O, K = k->K;
    for (int64_t g = 0; g < groups; g++)
        for (int64_t o = 0; o < O; o++)
            for (int64_t c = 0; c < C; c++)
                for (int64_t t = 0; t < K; t++)
                    dw[((g * O + o) * C + c) * K + t] =
                        k->form == BY_OUTPUTS  ? k->sums[((o / LANES * C + c) * K + t) * LANES + o % LANES]
                        : k->form == BY_INPUTS ? k->sums[((c / LANES * K + t) * O + o) * LANES + c % LANES]
                                               : k->sums[((o * C + c) * K + t) * LANES + g];
}

void gradref_conv2d_backward_weight(float *restrict dw, const float *restrict grad, const float *restrict x,
                                    const gradref_conv2d_shape *s, float *restrict scratch) {
    Work k = work_of(s);
    const int64_t step = k.form == BY_GROUPS ? LANES : 1; /* groups at a time */
    k.offset = (int64_t *)gradref_carve(&scratch, 2 * (k.C * k.K + k.O));
    k.x_at = (int64_t *)gradref_carve(&scratch, 2 * k.chunk);
    k.g_at = (int64_t *)gradref_carve(&scratch, 2 * k.chunk);
    k.count_up = (int64_t *)gradref_carve(&scratch, 2 * k.chunk);
    k.planes = gradref_carve(&scratch, gradref_planes_floats(&k.p, k.x_channels));
    k.lanes = gradref_carve(&scratch, k.blocks * k.chunk * LANES);
    k.x_lanes = gradref_carve(&scratch, k.lanes_floats);
    k.sums = gradref_carve(&scratch, k.sums_floats);
    gradref_input_offsets(k.offset, s, &k.p);
    for (int64_t o = 0; k.form == BY_INPUTS && o < k.O; o++)
        k.offset[k.K + o] = o * k.out; /* over those of channels 1, 2, ..., which this form does not use */

    for (int64_t g = 0; g < s->groups; g += step) {
        const int64_t groups = gradref_min(step, s->groups - g);
        for (int64_t q = 0; q < k.sums_floats; q++)
            k.sums[q] = 0.0f;
        for (int64_t n = 0; n < s->n; n += k.p.images) {
            const int64_t images = gradref_min(k.p.images, s->n - n);
            gradref_pad_input(k.planes, x + (n * s->c + g * k.C) * s->h * s->w, groups * k.C, images, s, &k.p);
            if (k.form == BY_INPUTS)
                for (int64_t c = 0; c < k.C; c += LANES)
                    gradref_channels_last(k.x_lanes + c * k.x_ld, k.planes + c * k.x_ld, k.x_ld,
                                          gradref_min(LANES, k.C - c), k.x_ld);
            if (k.form == BY_GROUPS)
                for (int64_t c = 0; c < k.C; c++)
                    gradref_channels_last(k.x_lanes + c * k.x_ld * LANES, k.planes + c * k.x_ld, k.C * k.x_ld, groups,
                                          k.x_ld);
            for (int64_t q = 0; k.form != BY_OUTPUTS && q < k.p.slack * LANES; q++)
                k.x_lanes[k.lanes_floats - 1 - q] = 0.0f;
            for (int64_t p = 0; p < images * k.out; p += k.chunk)
                chunk(&k, s, grad + (n * s->o + g * k.O) * k.out, groups, p, gradref_min(k.chunk, images * k.out - p));
        }
        store(&k, dw + g * k.O * k.C * k.K, groups);
    }
}
