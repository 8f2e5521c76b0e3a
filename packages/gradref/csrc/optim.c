/* optim.c: one step of SGD and of Adam for one parameter, in place, in one pass over memory.
 *
 * Again the textbook loop is the fast one; NumPy would walk a dozen times over four arrays. What does not depend on
 * the element (bias corrections, the decayed rate) comes in, computed in double by the caller. The decays are apart, so
 * that without one no parameter is multiplied by 0 (an infinite one would give NaN).
 * Next: softmax_cross_entropy.c.
 */
#include "gradref.h"

#include <math.h>

#define INLINE static inline __attribute__((always_inline))

INLINE void sgd(float *restrict p, const float *restrict grad, float *restrict v, int64_t n, float rate, float momentum,
                float kept, float decay, const int decays, const int moves, const int nesterov) {
    for (int64_t q = 0; q < n; q++) {
        float g = decays ? grad[q] + decay * p[q] : grad[q];
        if (moves) {
            v[q] = momentum * v[q] + kept * g;
            g = nesterov ? g + momentum * v[q] : v[q];
        }
        p[q] -= rate * g;
    }
}

GRADREF_CLONES
void gradref_sgd(float *restrict p, const float *restrict grad, float *restrict v, int64_t n, float rate,
                 float momentum, float kept, float decay, int nesterov) {
    if (!v && decay == 0.0f)
        sgd(p, grad, v, n, rate, momentum, kept, decay, 0, 0, 0);
    else if (!v)
        sgd(p, grad, v, n, rate, momentum, kept, decay, 1, 0, 0);
    else if (decay == 0.0f)
        sgd(p, grad, v, n, rate, momentum, kept, decay, 0, 1, nesterov);
    else
        sgd(p, grad, v, n, rate, momentum, kept, decay, 1, 1, nesterov);
}

INLINE void adam(float *restrict p, const float *restrict grad, float *restrict m, float *restrict v, int64_t n,
                 const gradref_adam_step *s, const int decays) {
    const float beta1 = s->beta1, beta2 = s->beta2, rest1 = s->rest1, rest2 = s->rest2;
    const float size = s->size, root = s->root, eps = s->eps, kept = s->kept, decay = s->decay;
    for (int64_t q = 0; q < n; q++) {
        const float g = decays ? grad[q] + decay * p[q] : grad[q];
        m[q] = beta1 * m[q] + rest1 * g;
        v[q] = beta2 * v[q] + rest2 * (g * g);
        p[q] = kept * p[q] - size * m[q] / (root * sqrtf(v[q]) + eps);
    }
}

GRADREF_CLONES
void gradref_adam(float *restrict p, const float *restrict grad, float *restrict m, float *restrict v, int64_t n,
                  const gradref_adam_step *s) {
    if (s->decay == 0.0f)
        adam(p, grad, m, v, n, s, 0);
    else
        adam(p, grad, m, v, n, s, 1);
}
