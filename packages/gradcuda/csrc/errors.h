// What goes wrong, as C++ exceptions. errors.cpp also knows when the device itself is lost.
//
// CudaError and OutOfMemory become Python classes of those names (bindings.cpp); Refused becomes the class of
// gradcore.errors that it names. No nanobind or Python type here: kernels' launchers include this file too.
// Next: context.h.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <stdexcept>
#include <string>

namespace gradcuda {

struct CudaError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct OutOfMemory : CudaError {
    using CudaError::CudaError;
};

// An argument that a backend refuses. kind: a class of gradcore.errors ("ShapeError", "DTypeError", "ArgumentError").
struct Refused : std::runtime_error {
    Refused(const char *kind, const std::string &text) : std::runtime_error(text), kind(kind) {}
    const char *kind;
};

// Throw CudaError("what: the driver's reason") unless status is success. After an error that the device cannot
// recover from (an illegal address, say) every later call throws at once and says to restart: see throw_if_lost.
void check(cudaError_t status, const char *what);

// After each launch: check_launch("add_kernel"). Catches bad launches; errors inside a kernel show up later, at a
// synchronising call.
void check_launch(const char *kernel);

// Throw if an earlier error has lost the device for this process. Costs one load.
void throw_if_lost();

#define CUDA_CHECK(call) ::gradcuda::check((call), #call)

} // namespace gradcuda
