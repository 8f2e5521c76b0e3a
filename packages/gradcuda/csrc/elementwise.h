// Launchers of elementwise_binary.cu, elementwise_unary.cu and select.cu.
#pragma once

#include "layout.h"

namespace gradcuda {

enum class BinaryOp {
    add,
    subtract,
    multiply,
    divide,
    power,
    maximum, // T, T -> T
    relu_backward,
    sigmoid_backward,
    tanh_backward, // grad, y -> T
    greater,
    greater_equal,
    equal, // T, T -> bool
};

enum class UnaryOp { negative, abs, sign, exp, log, log1p, sqrt, tanh, relu, sigmoid };

// An array's memory, or (data null) a number from the host: `real` for float types, `integer` for the others.
struct Operand {
    const void *data = nullptr;
    double real = 0.0;
    int64_t integer = 0;
    bool single = false; // one element, which every output element reads
};

// out (n,) = op(a, b). Every operand is single or has n elements in the same order.
void binary_flat_launch(BinaryOp op, DType dtype, void *out, Operand a, Operand b, int64_t n, cudaStream_t stream);

// out (n,) = op(a, b), read along the layout's two operands.
void binary_broadcast_launch(BinaryOp op, DType dtype, void *out, const void *a, const void *b, const Layout &layout,
                             int64_t n, cudaStream_t stream);

// out (n,) = op(x).
void unary_launch(UnaryOp op, DType dtype, void *out, const void *x, int64_t n, cudaStream_t stream);

// out (n,) = condition ? a : b, read along the layout's three operands. Items are copied as bits: a null operand
// stands for the item whose bits are given.
void where_launch(size_t item, void *out, const bool *condition, const void *a, uint64_t a_bits, const void *b,
                  uint64_t b_bits, const Layout &layout, int64_t n, cudaStream_t stream);

} // namespace gradcuda
