/* elementwise.c: ReLU and its gradient, and the sum over all axes but the channels (the bias of a convolution).
 *
 * Here the textbook loop is the fast one: one pass over memory, without a branch, which the compiler vectorises. NumPy
 * takes two passes and a temporary array.
 * Next: optim.c.
 */
#include "plane.h"

GRADREF_CLONES
void gradref_relu(float *restrict y, const float *restrict x, int64_t n) {
    for (int64_t q = 0; q < n; q++)
        y[q] = x[q] <= 0.0f ? 0.0f : x[q]; /* a NaN stays */
}

GRADREF_CLONES
void gradref_relu_backward(float *restrict dx, const float *restrict grad, const float *restrict y, int64_t n) {
    for (int64_t q = 0; q < n; q++)
        dx[q] = y[q] <= 0.0f ? 0.0f : grad[q]; /* a NaN in y lets grad through */
}

/* A block in float lanes, the blocks in double: as good as pairwise summation. */
GRADREF_CLONES
void gradref_channel_sum(float *restrict sums, const float *restrict x, int64_t n, int64_t c, int64_t plane) {
    for (int64_t k = 0; k < c; k++) {
        double total = 0.0;
        for (int64_t image = 0; image < n; image++)
            for (int64_t first = 0; first < plane; first += 256) {
                const float *from = x + (image * c + k) * plane + first;
                const int64_t count = gradref_min(256, plane - first);
                float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
                for (int64_t q = 0; q < count; q++)
                    sum += from[q];
                total += sum;
            }
        sums[k] = (float)total;
    }
}
