// A Python number where an array is expected: it takes the array's dtype. Included by bind_*.cpp only.
#pragma once

#include "bind.h"
#include "elementwise.h"

#include <cstring>

namespace gradcuda {

// A Python or NumPy number as an operand for arrays of dtype; Refused if it is none, or does not fit integers.
Operand scalar_operand(const char *operation, nb::handle number, DType dtype);

// The operand's value as the bits of one item.
inline uint64_t scalar_bits(DType dtype, const Operand &operand) {
    uint64_t bits = 0;
    if (dtype == DType::float32) {
        const float value = static_cast<float>(operand.real);
        std::memcpy(&bits, &value, sizeof value);
    } else if (dtype == DType::float64) {
        std::memcpy(&bits, &operand.real, sizeof operand.real);
    } else if (dtype == DType::boolean) {
        bits = operand.integer != 0;
    } else {
        bits = static_cast<uint64_t>(operand.integer); // little-endian: the low bytes are the item
    }
    return bits;
}

// A NaN's bits for float types, 0 for others.
inline uint64_t nan_bits(DType dtype) {
    return dtype == DType::float32 ? 0x7fc00000u : dtype == DType::float64 ? 0x7ff8000000000000u : 0;
}

} // namespace gradcuda
