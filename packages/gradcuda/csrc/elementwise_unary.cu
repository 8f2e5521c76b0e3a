// Unary elementwise operations, and `where`, which chooses between two operands bit by bit.
#include "common.cuh"
#include "elementwise.h"
#include "elementwise_ops.cuh"

namespace gradcuda {

// ---------------------------------------------------------------- kernels

namespace {

// out, x (n,). One thread an element, grid-stride.
template <typename T, typename Op> __global__ void unary_kernel(T *out, const T *x, int64_t n, Op op) {
    for (int64_t i = first_index(); i < n; i += index_stride())
        out[i] = static_cast<T>(op(static_cast<Wide<T>>(x[i])));
}

// out (n,) = condition ? a : b along the layout (condition, a, b); null a or b: the value. One thread an element.
template <typename Bits>
__global__ void where_kernel(Bits *out, const bool *condition, const Bits *a, Bits a_value, const Bits *b, Bits b_value,
                             Layout layout, int64_t n) {
    for (int64_t i = first_index(); i < n; i += index_stride()) {
        int64_t offset[3];
        find_offsets(layout, i, offset);
        if (condition[offset[0]])
            out[i] = a == nullptr ? a_value : a[offset[1]];
        else
            out[i] = b == nullptr ? b_value : b[offset[2]];
    }
}

// ---------------------------------------------------------------- launchers

template <typename T, typename Op> void launch(Op op, void *out, const void *x, int64_t n, cudaStream_t stream) {
    unary_kernel<<<grid_for(n), BLOCK, 0, stream>>>(static_cast<T *>(out), static_cast<const T *>(x), n, op);
    check_launch("unary_kernel");
}

template <typename T> void launch_signed(UnaryOp op, void *out, const void *x, int64_t n, cudaStream_t stream) {
    switch (op) {
    case UnaryOp::negative:
        return launch<T>(op::Negative(), out, x, n, stream);
    case UnaryOp::abs:
        return launch<T>(op::Abs(), out, x, n, stream);
    case UnaryOp::sign:
        return launch<T>(op::Sign(), out, x, n, stream);
    case UnaryOp::relu:
        return launch<T>(op::Relu(), out, x, n, stream);
    default:
        break;
    }
    if constexpr (std::is_floating_point_v<T>) {
        switch (op) {
        case UnaryOp::exp:
            return launch<T>(op::Exp(), out, x, n, stream);
        case UnaryOp::log:
            return launch<T>(op::Log(), out, x, n, stream);
        case UnaryOp::log1p:
            return launch<T>(op::Log1p(), out, x, n, stream);
        case UnaryOp::sqrt:
            return launch<T>(op::Sqrt(), out, x, n, stream);
        case UnaryOp::tanh:
            return launch<T>(op::Tanh(), out, x, n, stream);
        case UnaryOp::sigmoid:
            return launch<T>(op::Sigmoid(), out, x, n, stream);
        default:
            break;
        }
    }
}

template <typename Bits>
void launch_where(void *out, const bool *condition, const void *a, uint64_t a_bits, const void *b, uint64_t b_bits,
                  const Layout &layout, int64_t n, cudaStream_t stream) {
    where_kernel<<<grid_for(n), BLOCK, 0, stream>>>(static_cast<Bits *>(out), condition, static_cast<const Bits *>(a),
                                                    static_cast<Bits>(a_bits), static_cast<const Bits *>(b),
                                                    static_cast<Bits>(b_bits), layout, n);
    check_launch("where_kernel");
}

} // namespace

void unary_launch(UnaryOp op, DType dtype, void *out, const void *x, int64_t n, cudaStream_t stream) {
    switch (dtype) {
    case DType::float32:
        return launch_signed<float>(op, out, x, n, stream);
    case DType::float64:
        return launch_signed<double>(op, out, x, n, stream);
    case DType::int32:
        return launch_signed<int32_t>(op, out, x, n, stream);
    case DType::int64:
        return launch_signed<int64_t>(op, out, x, n, stream);
    case DType::uint8:
    case DType::boolean:
        return launch_signed<uint8_t>(op, out, x, n, stream);
    }
}

void where_launch(size_t item, void *out, const bool *condition, const void *a, uint64_t a_bits, const void *b,
                  uint64_t b_bits, const Layout &layout, int64_t n, cudaStream_t stream) {
    if (item == 8)
        launch_where<uint64_t>(out, condition, a, a_bits, b, b_bits, layout, n, stream);
    else if (item == 4)
        launch_where<uint32_t>(out, condition, a, a_bits, b, b_bits, layout, n, stream);
    else
        launch_where<uint8_t>(out, condition, a, a_bits, b, b_bits, layout, n, stream);
}

} // namespace gradcuda
