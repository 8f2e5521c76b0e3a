// The kernels of planted.h: each has one fault, named in its comment.
#include "planted.h"

#include "common.cuh"

namespace gradcuda {

// ---------------------------------------------------------------- kernels

namespace {

// Fault: the last thread writes one element past the end.
__global__ void plant_overrun_kernel(float *x, int64_t n) {
    for (int64_t i = first_index(); i <= n; i += index_stride())
        x[i] = 1.0f;
}

// Fault: a thread reads its neighbour's word, in another warp for some, without a barrier in between.
__global__ void plant_race_kernel(float *x) {
    __shared__ float word[BLOCK];
    word[threadIdx.x] = static_cast<float>(threadIdx.x);
    x[threadIdx.x] = word[(threadIdx.x + 1) % BLOCK];
}

// Fault: reads memory that nobody has written, and decides by it.
__global__ void plant_uninitialized_kernel(float *x, const float *from) { x[0] = from[0] > 0.0f ? 1.0f : 2.0f; }

// Fault: writes to an address that belongs to nobody.
__global__ void plant_illegal_address_kernel(volatile int *nowhere) { *nowhere = 1; }

} // namespace

// ---------------------------------------------------------------- launchers

void plant_overrun_launch(float *x, int64_t n, cudaStream_t stream) {
    plant_overrun_kernel<<<grid_for(n + 1), BLOCK, 0, stream>>>(x, n);
    check_launch("plant_overrun_kernel");
}

void plant_race_launch(float *x, cudaStream_t stream) {
    plant_race_kernel<<<1, BLOCK, 0, stream>>>(x);
    check_launch("plant_race_kernel");
}

void plant_uninitialized_launch(float *x, const float *from, cudaStream_t stream) {
    plant_uninitialized_kernel<<<1, 1, 0, stream>>>(x, from);
    check_launch("plant_uninitialized_kernel");
}

void plant_illegal_address_launch(cudaStream_t stream) {
    plant_illegal_address_kernel<<<1, 1, 0, stream>>>(reinterpret_cast<int *>(0x10));
    check_launch("plant_illegal_address_kernel");
}

} // namespace gradcuda
