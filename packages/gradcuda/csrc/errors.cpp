// The three functions of errors.h, and the memory of a lost device.
#include "errors.h"

#include <atomic>
#include <mutex>

namespace gradcuda {

namespace {

std::mutex mutex;
std::string lost_text; // empty: the device is well

// After these the driver refuses all further work of this process.
bool loses_the_device(cudaError_t status) {
    switch (status) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorContained:
        return true;
    default:
        return false;
    }
}

std::atomic<bool> lost{false};

} // namespace

void throw_if_lost() {
    if (!lost.load(std::memory_order_relaxed))
        return;
    std::lock_guard<std::mutex> lock(mutex);
    throw CudaError(lost_text);
}

void check(cudaError_t status, const char *what) {
    if (status == cudaSuccess)
        return;
    throw_if_lost();
    cudaGetLastError(); // an error that can be recovered from must not show up at the next launch
    const std::string text =
        std::string(what) + ": " + cudaGetErrorString(status) + " (" + cudaGetErrorName(status) + ")";
    if (loses_the_device(status)) {
        std::lock_guard<std::mutex> lock(mutex);
        lost_text = "the GPU cannot be used any more in this process, restart it; seen at " + text;
        lost.store(true);
        throw CudaError(lost_text);
    }
    throw CudaError(text);
}

void check_launch(const char *kernel) {
    const cudaError_t status = cudaGetLastError();
    if (status != cudaSuccess)
        check(status, kernel);
}

} // namespace gradcuda
