/* softmax_cross_entropy.c: the loss of a classifier for small batches: one pass over each row, no temporary arrays.
 *
 * log_probs = shifted - log(sum(exp(shifted))), shifted = logits - their maximum; the loss of a row is -log_probs at
 * its label, 0 where the label is ignore_index. exp is the C library's, one value at a time: NumPy, which takes sixteen
 * at once, is faster from some thousands of logits on (dense.py has the rule).
 * Next: bindings.cpp.
 */
#include "gradref.h"

#include <math.h>

static int64_t kept_rows(const int64_t *restrict labels, int64_t n, int64_t ignore) {
    int64_t kept = 0;
    for (int64_t r = 0; r < n; r++)
        kept += labels[r] != ignore;
    return kept;
}

int gradref_softmax_cross_entropy(float *restrict loss, float *restrict log_probs, const float *restrict logits,
                                  const int64_t *restrict labels, int64_t n, int64_t classes, int64_t ignore,
                                  int reduction) {
    double total = 0.0;
    for (int64_t r = 0; r < n; r++)
        if (labels[r] != ignore && (labels[r] < 0 || labels[r] >= classes))
            return 1;
    for (int64_t r = 0; r < n; r++, logits += classes, log_probs += classes) {
        float most = logits[0];
        for (int64_t c = 1; c < classes; c++)
            most = logits[c] > most || logits[c] != logits[c] ? logits[c] : most; /* a NaN stays */
        float sum = 0.0f;
        for (int64_t c = 0; c < classes; c++)
            sum += expf(logits[c] - most);
        const float log_sum = logf(sum);
        for (int64_t c = 0; c < classes; c++)
            log_probs[c] = logits[c] - most - log_sum;
        const float here = labels[r] == ignore ? 0.0f : -log_probs[labels[r]];
        if (reduction == GRADREF_NONE)
            loss[r] = here;
        total += here;
    }
    if (reduction == GRADREF_SUM)
        *loss = (float)total;
    else if (reduction == GRADREF_MEAN)
        *loss = (float)(total / (double)kept_rows(labels, n, ignore)); /* 0 / 0: NaN */
    return 0;
}

void gradref_softmax_cross_entropy_backward(float *restrict dx, const float *restrict grad,
                                            const float *restrict log_probs, const int64_t *restrict labels, int64_t n,
                                            int64_t classes, int64_t ignore, int reduction) {
    const float kept = reduction == GRADREF_MEAN ? (float)kept_rows(labels, n, ignore) : 1.0f;
    for (int64_t r = 0; r < n; r++, dx += classes, log_probs += classes) {
        const float scale = grad[reduction == GRADREF_NONE ? r : 0] / kept;
        for (int64_t c = 0; c < classes; c++)
            dx[c] = labels[r] == ignore ? 0.0f : (expf(log_probs[c]) - (float)(c == labels[r])) * scale;
    }
}
