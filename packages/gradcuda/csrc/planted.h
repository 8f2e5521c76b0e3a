// Faults planted on purpose, so that tests can show that they are found. Nothing else calls these.
#pragma once

#include <cstdint>
#include <cuda_runtime_api.h>

namespace gradcuda {

void plant_overrun_launch(float *x, int64_t n, cudaStream_t stream);               // writes x[n]
void plant_race_launch(float *x, cudaStream_t stream);                             // shared memory without a barrier
void plant_uninitialized_launch(float *x, const float *from, cudaStream_t stream); // copies what nobody wrote
void plant_illegal_address_launch(cudaStream_t stream);                            // loses the device for this process

} // namespace gradcuda
