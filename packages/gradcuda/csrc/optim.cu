// optim.cu: SGD and Adam, one launch for up to 64 parameters.
//
// The parameters' pointers travel by value, as an argument of the kernel, so nothing is copied to the device first and
// a recorded launch keeps them. Blocks are dealt out over the parameters in order, CHUNK entries each.
// A step count is raised by the block that finishes last, after all have read it. The blocks that are done are counted
// in the upper half of the first parameter's own step count, which is 0 again afterwards: no memory besides, no second
// launch. (So counts stay below 2^32.)
#include "common.cuh"
#include "optim.h"

namespace gradcuda {
namespace {

constexpr int TABLE = 64;            // parameters; kernel arguments may take 4 KB on every GPU
constexpr int64_t CHUNK = 4 * BLOCK; // entries of a parameter that a block updates

template <class T> struct Table {
    Update<T> update[TABLE];
    unsigned first_block[TABLE + 1];
    int count;
};
static_assert(sizeof(Table<float>) + sizeof(AdamOptions) + 8 <= 4096, "too many kernel arguments");

// ------------------------------------------------------------------------------------------------ kernels

// Which parameter the block works on, which is uniform in it. Past the last one: count.
template <class T> __device__ int find_update(const Table<T> &table) {
    int t = 0;
    while (t < table.count && blockIdx.x >= table.first_block[t + 1])
        t++;
    return t;
}

__device__ inline unsigned steps_taken(const int64_t *step) { return *reinterpret_cast<const unsigned *>(step); }

// The block that comes here last raises all step counts.
template <class T> __device__ void count_step(const Table<T> &table) {
    __shared__ bool last;
    __syncthreads(); // every thread of the block has read its step count
    if (threadIdx.x == 0) {
        __threadfence();
        unsigned *done = reinterpret_cast<unsigned *>(table.update[0].step) + 1;
        last = atomicInc(done, gridDim.x - 1) == gridDim.x - 1; // wraps to 0
    }
    __syncthreads();
    if (last)
        for (int t = threadIdx.x; t < table.count; t += blockDim.x)
            *reinterpret_cast<unsigned *>(table.update[t].step) += 1;
}

// g += decay * p; v = momentum * v + (1 - dampening) * g, the first time v = momentum * v + g; p -= rate * v.
template <class T>
__global__ void sgd_kernel(const __grid_constant__ Table<T> table, const double *rate, SgdOptions o) {
    const int t = find_update(table);
    if (t < table.count) {
        const Update<T> &u = table.update[t];
        const T lr = static_cast<T>(*rate), momentum = static_cast<T>(o.momentum);
        const T decay = static_cast<T>(o.weight_decay);
        const T fresh = steps_taken(u.step) == 0 ? T(1) : static_cast<T>(1.0 - o.dampening);
        const int64_t begin = (blockIdx.x - table.first_block[t]) * CHUNK, end = min(u.size, begin + CHUNK);
        for (int64_t i = begin + threadIdx.x; i < end; i += BLOCK) {
            T g = u.grad[i];
            const T p = u.parameter[i];
            if (decay != T(0))
                g += p * decay;
            if (u.first != nullptr) {
                const T v = u.first[i] * momentum + g * fresh;
                u.first[i] = v;
                g = o.nesterov ? g + v * momentum : v;
            }
            u.parameter[i] = p - g * lr;
        }
    }
    count_step(table);
}

// Adam (Kingma and Ba 2015), eps added after the bias-corrected root; decoupled decay is AdamW's.
template <class T>
__global__ void adam_kernel(const __grid_constant__ Table<T> table, const double *rate, AdamOptions o) {
    __shared__ T size, root_scale, keep; // rate / correction1, sqrt(correction2), 1 - rate * decay
    const int t = find_update(table);
    if (t < table.count) {
        const Update<T> &u = table.update[t];
        if (threadIdx.x == 0) {
            const double count = steps_taken(u.step) + 1.0;
            size = static_cast<T>(*rate / (1.0 - pow(o.beta1, count)));
            root_scale = static_cast<T>(sqrt(1.0 - pow(o.beta2, count)));
            keep = static_cast<T>(o.decoupled ? 1.0 - *rate * o.weight_decay : 1.0);
        }
        __syncthreads();
        const T beta1 = static_cast<T>(o.beta1), beta2 = static_cast<T>(o.beta2), eps = static_cast<T>(o.eps);
        const T fresh1 = static_cast<T>(1.0 - o.beta1), fresh2 = static_cast<T>(1.0 - o.beta2);
        const T decay = static_cast<T>(o.decoupled ? 0.0 : o.weight_decay);
        const int64_t begin = (blockIdx.x - table.first_block[t]) * CHUNK, end = min(u.size, begin + CHUNK);
        for (int64_t i = begin + threadIdx.x; i < end; i += BLOCK) {
            T g = u.grad[i];
            const T p = u.parameter[i];
            if (decay != T(0))
                g += p * decay;
            const T m = u.first[i] * beta1 + g * fresh1;
            const T v = u.second[i] * beta2 + g * g * fresh2;
            u.first[i] = m;
            u.second[i] = v;
            u.parameter[i] = p * keep - m * size / (sqrt(v) / root_scale + eps);
        }
    }
    count_step(table);
}

// ------------------------------------------------------------------------------------------------ launchers

// f(table, blocks) for every TABLE parameters.
template <class T, class F> void by_table(const std::vector<Update<T>> &updates, const F &f) {
    for (size_t begin = 0; begin < updates.size(); begin += TABLE) {
        Table<T> table{};
        int64_t blocks = 0;
        for (size_t i = begin; i < updates.size() && i < begin + TABLE; i++) {
            table.update[table.count] = updates[i];
            blocks += ceil_div<int64_t>(updates[i].size, CHUNK);
            if (blocks > INT32_MAX)
                throw CudaError("optimizer: too many entries for one launch");
            table.first_block[++table.count] = static_cast<unsigned>(blocks);
        }
        f(table, static_cast<unsigned>(blocks > 0 ? blocks : 1)); // empty parameters count their steps too
    }
}

} // namespace

template <class T>
void sgd_update(const std::vector<Update<T>> &updates, const double *rate, const SgdOptions &o, cudaStream_t stream) {
    by_table(updates, [&](const Table<T> &table, unsigned blocks) {
        sgd_kernel<T><<<blocks, BLOCK, 0, stream>>>(table, rate, o);
        check_launch("sgd_kernel");
    });
}

template <class T>
void adam_update(const std::vector<Update<T>> &updates, const double *rate, const AdamOptions &o, cudaStream_t stream) {
    by_table(updates, [&](const Table<T> &table, unsigned blocks) {
        adam_kernel<T><<<blocks, BLOCK, 0, stream>>>(table, rate, o);
        check_launch("adam_kernel");
    });
}

#define INSTANTIATE(T)                                                                                                 \
    template void sgd_update(const std::vector<Update<T>> &, const double *, const SgdOptions &, cudaStream_t);        \
    template void adam_update(const std::vector<Update<T>> &, const double *, const AdamOptions &, cudaStream_t);
INSTANTIATE(float)
INSTANTIATE(double)
#undef INSTANTIATE

} // namespace gradcuda
