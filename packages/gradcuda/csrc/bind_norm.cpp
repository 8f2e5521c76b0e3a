// Batch normalisation: (N, C, inner), outputs, scratch, launch.
#include "bind.h"

#include "norm.h"

namespace gradcuda {

namespace {

NormShape channels(const char *operation, const DeviceArray &x, std::initializer_list<const DeviceArray *> vectors) {
    const Shape &shape = x.shape;
    if (shape.ndim < 2)
        throw Refused("ShapeError", std::string(operation) + ": input must be (N, C, ...), got " + to_string(shape));
    for (const DeviceArray *one : vectors)
        if (one->count() != shape[1] || one->dtype != x.dtype)
            throw Refused("ShapeError", std::string(operation) + ": got input " + to_string(shape) + " of " +
                                            dtype_name(x.dtype) + " and " + to_string(one->shape) + " of " +
                                            dtype_name(one->dtype) + ", expected one number a channel");
    NormShape s{shape[0], shape[1], 1};
    for (int i = 2; i < shape.ndim; ++i)
        s.inner *= shape[i];
    return s;
}

std::tuple<DeviceArray, DeviceArray, DeviceArray> batch_norm(const DeviceArray &x, const DeviceArray &weight,
                                                             const DeviceArray &bias, double eps) {
    Scope scope("batch_norm", x, weight, bias);
    const NormShape s = channels("batch_norm", x, {&weight, &bias});
    DeviceArray y = empty(scope.context, x.shape, x.dtype);
    DeviceArray mean = empty(scope.context, weight.shape, x.dtype), var = empty(scope.context, weight.shape, x.dtype);
    Scratch partials(scope.context, batch_norm_scratch(s));
    dispatch_float("batch_norm", x.dtype, [&](auto type) {
        using T = decltype(type);
        batch_norm_forward(y.as<T>(), mean.as<T>(), var.as<T>(), x.as<const T>(), weight.as<const T>(),
                           bias.as<const T>(), eps, s, partials.as<void>(), scope.stream());
    });
    return {y, mean, var};
}

std::tuple<DeviceArray, DeviceArray, DeviceArray> batch_norm_backward_(const DeviceArray &grad, const DeviceArray &x,
                                                                       const DeviceArray &weight,
                                                                       const DeviceArray &mean, const DeviceArray &var,
                                                                       double eps) {
    Scope scope("batch_norm_backward", grad, x, weight, mean, var);
    const NormShape s = channels("batch_norm_backward", x, {&weight, &mean, &var});
    if (grad.shape != x.shape || grad.dtype != x.dtype)
        throw Refused("ShapeError",
                      "batch_norm_backward: got grad " + to_string(grad.shape) + " for input " + to_string(x.shape));
    DeviceArray dx = empty(scope.context, x.shape, x.dtype);
    DeviceArray dweight = empty(scope.context, weight.shape, x.dtype);
    DeviceArray dbias = empty(scope.context, weight.shape, x.dtype);
    Scratch partials(scope.context, batch_norm_scratch(s));
    dispatch_float("batch_norm_backward", x.dtype, [&](auto type) {
        using T = decltype(type);
        batch_norm_backward(dx.as<T>(), dweight.as<T>(), dbias.as<T>(), grad.as<const T>(), x.as<const T>(),
                            weight.as<const T>(), mean.as<const T>(), var.as<const T>(), eps, s, partials.as<void>(),
                            scope.stream());
    });
    return {dx, dweight, dbias};
}

} // namespace

void bind_norm(nb::module_ &m) {
    m.def("batch_norm", &batch_norm, "x"_a, "weight"_a, "bias"_a, "eps"_a);
    m.def("batch_norm_backward", &batch_norm_backward_, "grad"_a, "x"_a, "weight"_a, "mean"_a, "var"_a, "eps"_a);
}

} // namespace gradcuda
