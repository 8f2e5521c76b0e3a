// Binary elementwise operations: one kernel for operands that lie alike (or are one number), one that broadcasts.
//
// Next: elementwise_ops.cuh, the arithmetic; elementwise_unary.cu; bind_elementwise.cpp, which picks the kernel.
#include "common.cuh"
#include "elementwise.h"
#include "elementwise_ops.cuh"

namespace gradcuda {

// ---------------------------------------------------------------- kernels

namespace {

constexpr int VECTOR = 4;

template <typename T> struct alignas(VECTOR * sizeof(T)) Pack {
    T item[VECTOR];
};

// An operand as a kernel sees it: an array, one element in device memory, or a number.
template <typename T> struct Reader {
    const T *data;
    Wide<T> value;
    bool single;
};

// out (n,), a and b (n,) or single. One thread a pack of four (vector), or an element; grid-stride.
template <typename T, typename R, typename Op>
__global__ void binary_flat_kernel(R *out, Reader<T> a, Reader<T> b, int64_t n, bool vector, Op op) {
    using W = Wide<T>;
    const W a_value = a.single && a.data != nullptr ? static_cast<W>(a.data[0]) : a.value;
    const W b_value = b.single && b.data != nullptr ? static_cast<W>(b.data[0]) : b.value;
    const int64_t packs = vector ? n / VECTOR : 0;
    for (int64_t i = first_index(); i < packs; i += index_stride()) {
        Pack<T> x, y;
        Pack<R> result;
        if (!a.single)
            x = reinterpret_cast<const Pack<T> *>(a.data)[i];
        if (!b.single)
            y = reinterpret_cast<const Pack<T> *>(b.data)[i];
        for (int j = 0; j < VECTOR; ++j)
            result.item[j] = static_cast<R>(
                op(a.single ? a_value : static_cast<W>(x.item[j]), b.single ? b_value : static_cast<W>(y.item[j])));
        reinterpret_cast<Pack<R> *>(out)[i] = result;
    }
    for (int64_t i = packs * VECTOR + first_index(); i < n; i += index_stride())
        out[i] = static_cast<R>(
            op(a.single ? a_value : static_cast<W>(a.data[i]), b.single ? b_value : static_cast<W>(b.data[i])));
}

// out (n,), a and b read along the layout. One thread an output element, grid-stride.
template <typename T, typename R, typename Op>
__global__ void binary_broadcast_kernel(R *out, const T *a, const T *b, Layout layout, int64_t n, Op op) {
    using W = Wide<T>;
    for (int64_t i = first_index(); i < n; i += index_stride()) {
        int64_t offset[2];
        find_offsets(layout, i, offset);
        out[i] = static_cast<R>(op(static_cast<W>(a[offset[0]]), static_cast<W>(b[offset[1]])));
    }
}

// ---------------------------------------------------------------- launchers

// Calls f(functor, T(), R()) for the operation and the element type.
template <typename T, typename F> void with_operation(BinaryOp op, F &&f) {
    switch (op) {
    case BinaryOp::add:
        return f(op::Add(), T(), T());
    case BinaryOp::subtract:
        return f(op::Subtract(), T(), T());
    case BinaryOp::multiply:
        return f(op::Multiply(), T(), T());
    case BinaryOp::power:
        return f(op::Power(), T(), T());
    case BinaryOp::maximum:
        return f(op::Maximum(), T(), T());
    case BinaryOp::greater:
        return f(op::Greater(), T(), bool());
    case BinaryOp::greater_equal:
        return f(op::GreaterEqual(), T(), bool());
    case BinaryOp::equal:
        return f(op::Equal(), T(), bool());
    default:
        break;
    }
    if constexpr (std::is_floating_point_v<T>) {
        switch (op) {
        case BinaryOp::divide:
            return f(op::Divide(), T(), T());
        case BinaryOp::relu_backward:
            return f(op::ReluBackward(), T(), T());
        case BinaryOp::sigmoid_backward:
            return f(op::SigmoidBackward(), T(), T());
        case BinaryOp::tanh_backward:
            return f(op::TanhBackward(), T(), T());
        default:
            break;
        }
    }
}

template <typename F> void with_operation(BinaryOp op, DType dtype, F &&f) {
    switch (dtype) {
    case DType::float32:
        return with_operation<float>(op, f);
    case DType::float64:
        return with_operation<double>(op, f);
    case DType::int32:
        return with_operation<int32_t>(op, f);
    case DType::int64:
        return with_operation<int64_t>(op, f);
    case DType::uint8:
        return with_operation<uint8_t>(op, f);
    case DType::boolean: // 0 or 1 in a byte, where "or" is the larger of two
        return with_operation<uint8_t>(op == BinaryOp::add ? BinaryOp::maximum : op, f);
    }
}

template <typename T> Reader<T> reader(const Operand &operand) {
    const bool real = std::is_floating_point_v<T>;
    const Wide<T> value = real ? static_cast<Wide<T>>(operand.real) : static_cast<Wide<T>>(operand.integer);
    return {static_cast<const T *>(operand.data), value, operand.data == nullptr || operand.single};
}

} // namespace

void binary_flat_launch(BinaryOp op, DType dtype, void *out, Operand a, Operand b, int64_t n, cudaStream_t stream) {
    with_operation(op, dtype, [&](auto functor, auto element, auto result) {
        using T = decltype(element);
        using R = decltype(result);
        const Reader<T> x = reader<T>(a), y = reader<T>(b);
        const bool vector = is_aligned(out, sizeof(Pack<R>)) && (x.single || is_aligned(x.data, sizeof(Pack<T>))) &&
                            (y.single || is_aligned(y.data, sizeof(Pack<T>)));
        binary_flat_kernel<T, R><<<grid_for(n, BLOCK, vector ? VECTOR : 1), BLOCK, 0, stream>>>(
            static_cast<R *>(out), x, y, n, vector, functor);
        check_launch("binary_flat_kernel");
    });
}

void binary_broadcast_launch(BinaryOp op, DType dtype, void *out, const void *a, const void *b, const Layout &layout,
                             int64_t n, cudaStream_t stream) {
    with_operation(op, dtype, [&](auto functor, auto element, auto result) {
        using T = decltype(element);
        using R = decltype(result);
        binary_broadcast_kernel<T, R><<<grid_for(n), BLOCK, 0, stream>>>(
            static_cast<R *>(out), static_cast<const T *>(a), static_cast<const T *>(b), layout, n, functor);
        check_launch("binary_broadcast_kernel");
    });
}

} // namespace gradcuda
