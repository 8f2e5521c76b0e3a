/* linear.c: y = x w^T + b of a linear layer, perhaps with ReLU, and its two gradients: three matrix products.
 *
 * The textbook loops first; then the product in register tiles (outer.c): 12 rows x 32 columns of sums stay in
 * registers while the inner axis passes. 32 columns of the right factor are packed a chunk at a time, so that they are
 * whole vectors in the first cache for all rows, whatever their stride was. Sums of a chunk are added in order.
 * Next: elementwise.c.
 */
#include "plane.h"

#include "tile.h"

/* y[r][c] = bias[c] + sum over k of a[r*a_row + k*a_step] * b[k*b_step + c*b_column], y (rows, columns) without gaps.
 * bias may be NULL; relu replaces what is not above 0, and no NaN, by 0. */
typedef struct {
    int64_t rows, columns, inner;
    int64_t a_row, a_step, b_step, b_column;
    int relu;
} Product;

static Product forward_of(int64_t n, int64_t in, int64_t out, int relu) {
    return (Product){n, out, in, in, 1, 1, in, relu};
}
static Product input_of(int64_t n, int64_t in, int64_t out) { return (Product){n, in, out, out, 1, in, 1, 0}; }
static Product weight_of(int64_t n, int64_t in, int64_t out) { return (Product){out, in, n, 1, out, in, 1, 0}; }

/* ---- as the book writes it ---- */

static void reference(float *restrict y, const float *restrict a, const float *restrict b, const float *restrict bias,
                      Product s) {
    for (int64_t r = 0; r < s.rows; r++)
        for (int64_t c = 0; c < s.columns; c++) {
            float sum = bias ? bias[c] : 0.0f;
            for (int64_t k = 0; k < s.inner; k++)
                sum += a[r * s.a_row + k * s.a_step] * b[k * s.b_step + c * s.b_column];
            y[r * s.columns + c] = s.relu && sum <= 0.0f ? 0.0f : sum;
        }
}

void gradref_linear_reference(float *restrict y, const float *restrict x, const float *restrict weight,
                              const float *restrict bias, int64_t n, int64_t in, int64_t out, int relu) {
    reference(y, x, weight, bias, forward_of(n, in, out, relu));
}

void gradref_linear_backward_input_reference(float *restrict dx, const float *restrict grad,
                                             const float *restrict weight, int64_t n, int64_t in, int64_t out) {
    reference(dx, grad, weight, 0, input_of(n, in, out));
}

void gradref_linear_backward_weight_reference(float *restrict dw, const float *restrict grad, const float *restrict x,
                                              int64_t n, int64_t in, int64_t out) {
    reference(dw, grad, x, 0, weight_of(n, in, out));
}

/* ---- fast ---- */

enum { CHUNK = 256, ROWS = 240, BLOCKS = 2 }; /* of the inner axis; rows at a time (20 tiles of 12); of 16 columns */

int64_t gradref_linear_workspace(void) { return 2 * (ROWS + 2 * CHUNK) + BLOCKS * (CHUNK + ROWS) * LANES; }

/* packed[block][k][16]: columns c to c + many - 1 of b, for k < count. Lanes beyond the columns are never looked at. */
GRADREF_CLONES
void gradref_pack_rows(float *restrict packed, const float *restrict b, int64_t step, int64_t many, int64_t count) {
    for (int64_t k = 0; k < count; k++)
        if (many == LANES)
#pragma omp simd
            for (int64_t l = 0; l < LANES; l++)
                packed[k * LANES + l] = b[k * step + l];
        else
            for (int64_t l = 0; l < LANES; l++)
                packed[k * LANES + l] = l < many ? b[k * step + l] : 0.0f;
}

/* The sums of `many` columns of one block, with bias and ReLU, to y. */
GRADREF_CLONES
void gradref_store_block(float *restrict y, int64_t ld, const float *restrict sums, const float *restrict bias,
                         int64_t rows, int64_t many, int relu) {
    float start[LANES] = {0};
    for (int64_t l = 0; bias && l < many; l++)
        start[l] = bias[l];
    for (int64_t r = 0; r < rows; r++) {
        float kept[LANES];
#pragma omp simd
        for (int l = 0; l < LANES; l++) {
            const float v = sums[r * LANES + l] + start[l];
            kept[l] = relu && v <= 0.0f ? 0.0f : v;
        }
        if (many == LANES)
#pragma omp simd
            for (int64_t l = 0; l < LANES; l++)
                y[r * ld + l] = kept[l];
        else
            for (int64_t l = 0; l < many; l++)
                y[r * ld + l] = kept[l];
    }
}

static void product(float *restrict y, const float *restrict a, const float *restrict b, const float *restrict bias,
                    Product s, float *restrict scratch) {
    int64_t *offset = (int64_t *)gradref_carve(&scratch, 2 * ROWS);
    int64_t *a_at = (int64_t *)gradref_carve(&scratch, 2 * CHUNK),
            *b_at = (int64_t *)gradref_carve(&scratch, 2 * CHUNK);
    float *packed = gradref_carve(&scratch, BLOCKS * CHUNK * LANES),
          *sums = gradref_carve(&scratch, BLOCKS * ROWS * LANES);
    const int64_t chunk = gradref_ceil_div(s.inner, gradref_max(1, gradref_ceil_div(s.inner, CHUNK)));
    const int direct = s.b_column == 1 && s.b_step % LANES == 0 && s.rows <= 128;
    for (int64_t r = 0; r < ROWS; r++)
        offset[r] = r * s.a_row;
    for (int64_t k = 0; k < CHUNK; k++) {
        a_at[k] = k * s.a_step;
        b_at[k] = direct ? k * (s.b_step / LANES) : k;
    }
    for (int64_t r = 0; r < s.rows; r += ROWS)
        for (int64_t c = 0; c < s.columns; c += BLOCKS * LANES) {
            const int64_t rows = gradref_min(ROWS, s.rows - r);
            const int64_t blocks = gradref_min(BLOCKS, gradref_ceil_div(s.columns - c, LANES));
            for (int64_t q = 0; q < blocks * rows * LANES; q++)
                sums[q] = 0.0f;
            for (int64_t k = 0; k < s.inner; k += chunk) {
                const int64_t count = gradref_min(chunk, s.inner - k);
                for (int64_t q = 0; q < blocks && !direct; q++) {
                    const int64_t first = c + q * LANES, many = gradref_min(LANES, s.columns - first);
                    float *to = packed + q * CHUNK * LANES;
                    const float *from = b + k * s.b_step + first * s.b_column;
                    if (s.b_column == 1)
                        gradref_pack_rows(to, from, s.b_step, many, count);
                    else
                        gradref_channels_last(to, from, s.b_column, many, count);
                }
                gradref_outer(sums, rows, a + r * s.a_row + k * s.a_step, offset, a_at,
                              direct ? b + k * s.b_step + c : packed, direct ? LANES : CHUNK * LANES, b_at, blocks,
                              rows * LANES, count);
            }
            for (int64_t q = 0; q < blocks; q++) {
                const int64_t first = c + q * LANES;
                gradref_store_block(y + r * s.columns + first, s.columns, sums + q * rows * LANES,
                                    bias ? bias + first : 0, rows, gradref_min(LANES, s.columns - first), s.relu);
            }
        }
}

void gradref_linear(float *restrict y, const float *restrict x, const float *restrict weight,
                    const float *restrict bias, int64_t n, int64_t in, int64_t out, int relu, float *restrict scratch) {
    product(y, x, weight, bias, forward_of(n, in, out, relu), scratch);
}

void gradref_linear_backward_input(float *restrict dx, const float *restrict grad, const float *restrict weight,
                                   int64_t n, int64_t in, int64_t out, float *restrict scratch) {
    product(dx, grad, weight, 0, input_of(n, in, out), scratch);
}

void gradref_linear_backward_weight(float *restrict dw, const float *restrict grad, const float *restrict x, int64_t n,
                                    int64_t in, int64_t out, float *restrict scratch) {
    product(dw, grad, x, 0, weight_of(n, in, out), scratch);
}
