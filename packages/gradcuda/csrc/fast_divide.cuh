// fast_divide.cuh: division by a number that is known at launch, as one multiplication (Granlund and Montgomery 1994).
//
// An index such as k = (c*KH + kh)*KW + kw is taken apart in every iteration of a convolution's inner loop; a true
// division costs some 20 instructions, this one 3. Valid for 0 <= n < 2^31 and 1 <= divisor < 2^31.
// Next: gemm_tile.cuh.
#pragma once

#include <cstdint>
#include <cuda_runtime.h>

namespace gradcuda {

struct FastDivide {
    uint32_t divisor = 1, multiplier = 1, shift = 0;

    FastDivide() = default;
    explicit FastDivide(int64_t d) : divisor(static_cast<uint32_t>(d > 0 ? d : 1)) { // of an empty axis: never used
        while ((uint64_t{1} << shift) < divisor)
            shift++;
        multiplier = static_cast<uint32_t>((((uint64_t{1} << shift) - divisor) << 32) / divisor + 1);
    }

    __device__ int divide(int n) const {
        const uint32_t u = static_cast<uint32_t>(n);
        return static_cast<int>((__umulhi(u, multiplier) + u) >> shift);
    }

    // quotient; n becomes the remainder
    __device__ int split(int &n) const {
        const int quotient = divide(n);
        n -= quotient * static_cast<int>(divisor);
        return quotient;
    }
};

// n -> (n / d, n % d) for a 64-bit n: the short way where n fits.
__device__ inline int64_t split_wide(int64_t n, const FastDivide &d, int &remainder) {
    if (n <= INT32_MAX) {
        remainder = static_cast<int>(n);
        return d.split(remainder);
    }
    const int64_t quotient = n / d.divisor;
    remainder = static_cast<int>(n - quotient * d.divisor);
    return quotient;
}

} // namespace gradcuda
