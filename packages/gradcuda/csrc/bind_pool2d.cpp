// Pooling: sizes into Pool2dShape, outputs, launch. gradcore.ops has checked the window.
#include "bind.h"

#include "pool2d.h"

namespace gradcuda {

namespace {

int narrow(const char *operation, int64_t n) {
    if (n > INT32_MAX)
        throw Refused("ShapeError", std::string(operation) + ": a size of " + std::to_string(n) +
                                        " is too large for the CUDA kernels");
    return static_cast<int>(n);
}

Pool2dShape make_shape(const char *operation, const Shape &x, const Pair &out, const Pair &kernel, const Pair &stride,
                       const Pair &padding, const Pair &dilation) {
    if (x.ndim != 4)
        throw Refused("ShapeError", std::string(operation) + ": input must be (N, C, H, W), got " + to_string(x));
    const auto n = [&](int64_t size) { return narrow(operation, size); };
    n(x[2] * x[3]); // positions are int32
    n(out.first * out.second);
    n(x[2] + 2 * padding.first + dilation.first * kernel.first + stride.first);
    n(x[3] + 2 * padding.second + dilation.second * kernel.second + stride.second);
    return {x[0] * x[1],       n(x[2]),           n(x[3]),           n(out.first),     n(out.second),
            n(kernel.first),   n(kernel.second),  n(stride.first),   n(stride.second), n(padding.first),
            n(padding.second), n(dilation.first), n(dilation.second)};
}

std::pair<DeviceArray, DeviceArray> max_pool2d(const DeviceArray &x, const Pair &kernel, const Pair &stride,
                                               const Pair &padding, const Pair &dilation, const Pair &out_size) {
    Scope scope("max_pool2d", x);
    const Pool2dShape s = make_shape("max_pool2d", x.shape, out_size, kernel, stride, padding, dilation);
    const Shape shape{x.shape[0], x.shape[1], out_size.first, out_size.second};
    DeviceArray y = empty(scope.context, shape, x.dtype), indices = empty(scope.context, shape, DType::int32);
    dispatch_float("max_pool2d", x.dtype, [&](auto type) {
        using T = decltype(type);
        max_pool2d_forward(y.as<T>(), indices.as<int32_t>(), x.as<T>(), s, scope.stream());
    });
    return {y, indices};
}

DeviceArray max_pool2d_backward_(const DeviceArray &grad, const DeviceArray &indices, const Shape &x_shape,
                                 const Pair &kernel, const Pair &stride, const Pair &padding, const Pair &dilation) {
    Scope scope("max_pool2d_backward", grad, indices);
    if (indices.dtype != DType::int32 || indices.shape != grad.shape || grad.shape.ndim != 4)
        throw Refused("ShapeError", "max_pool2d_backward: got grad " + to_string(grad.shape) + " and indices " +
                                        to_string(indices.shape) + " of " + dtype_name(indices.dtype));
    const Pool2dShape s =
        make_shape("max_pool2d_backward", x_shape, {grad.shape[2], grad.shape[3]}, kernel, stride, padding, dilation);
    DeviceArray dx = empty(scope.context, x_shape, grad.dtype);
    dispatch_float("max_pool2d_backward", grad.dtype, [&](auto type) {
        using T = decltype(type);
        max_pool2d_backward(dx.as<T>(), grad.as<T>(), indices.as<int32_t>(), s, scope.stream());
    });
    return dx;
}

DeviceArray avg_pool2d(const DeviceArray &x, const Pair &kernel, const Pair &stride, const Pair &padding,
                       const Pair &out_size, bool count_include_pad) {
    Scope scope("avg_pool2d", x);
    const Pool2dShape s = make_shape("avg_pool2d", x.shape, out_size, kernel, stride, padding, {1, 1});
    DeviceArray y = empty(scope.context, {x.shape[0], x.shape[1], out_size.first, out_size.second}, x.dtype);
    dispatch_float("avg_pool2d", x.dtype, [&](auto type) {
        using T = decltype(type);
        avg_pool2d_forward(y.as<T>(), x.as<T>(), s, count_include_pad, scope.stream());
    });
    return y;
}

DeviceArray avg_pool2d_backward_(const DeviceArray &grad, const Shape &x_shape, const Pair &kernel, const Pair &stride,
                                 const Pair &padding, bool count_include_pad) {
    Scope scope("avg_pool2d_backward", grad);
    if (grad.shape.ndim != 4)
        throw Refused("ShapeError", "avg_pool2d_backward: got grad " + to_string(grad.shape));
    const Pool2dShape s =
        make_shape("avg_pool2d_backward", x_shape, {grad.shape[2], grad.shape[3]}, kernel, stride, padding, {1, 1});
    DeviceArray dx = empty(scope.context, x_shape, grad.dtype);
    dispatch_float("avg_pool2d_backward", grad.dtype, [&](auto type) {
        using T = decltype(type);
        avg_pool2d_backward(dx.as<T>(), grad.as<T>(), s, count_include_pad, scope.stream());
    });
    return dx;
}

} // namespace

void bind_pool2d(nb::module_ &m) {
    m.def("max_pool2d", &max_pool2d, "x"_a, "kernel"_a, "stride"_a, "padding"_a, "dilation"_a, "out_size"_a);
    m.def("max_pool2d_backward", &max_pool2d_backward_, "grad"_a, "indices"_a, "x_shape"_a, "kernel"_a, "stride"_a,
          "padding"_a, "dilation"_a);
    m.def("avg_pool2d", &avg_pool2d, "x"_a, "kernel"_a, "stride"_a, "padding"_a, "out_size"_a, "count_include_pad"_a);
    m.def("avg_pool2d_backward", &avg_pool2d_backward_, "grad"_a, "x_shape"_a, "kernel"_a, "stride"_a, "padding"_a,
          "count_include_pad"_a);
}

} // namespace gradcuda
