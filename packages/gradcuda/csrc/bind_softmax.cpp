// softmax, log_softmax and cross-entropy: the axis' layout, label types, scratch, launch.
#include "bind.h"

#include "softmax.h"

namespace gradcuda {

namespace {

AxisShape around(const char *operation, const Shape &shape, int64_t axis) {
    if (axis < 0 || axis >= shape.ndim)
        throw Refused("ShapeError",
                      std::string(operation) + ": no axis " + std::to_string(axis) + " in " + to_string(shape));
    AxisShape s{1, shape[static_cast<int>(axis)], 1};
    for (int i = 0; i < shape.ndim; ++i)
        (i < axis ? s.outer : s.inner) *= i == axis ? 1 : shape[i];
    return s;
}

DeviceArray forward(const char *operation, const DeviceArray &x, int64_t axis, bool logarithm) {
    Scope scope(operation, x);
    const AxisShape s = around(operation, x.shape, axis);
    DeviceArray y = empty(scope.context, x.shape, x.dtype);
    dispatch_float(operation, x.dtype, [&](auto type) {
        using T = decltype(type);
        softmax_forward(y.as<T>(), x.as<T>(), s, logarithm, scope.stream());
    });
    return y;
}

DeviceArray backward(const char *operation, const DeviceArray &grad, const DeviceArray &y, int64_t axis,
                     bool logarithm) {
    Scope scope(operation, grad, y);
    if (grad.shape != y.shape || grad.dtype != y.dtype)
        throw Refused("ShapeError", std::string(operation) + ": got grad " + to_string(grad.shape) + " of " +
                                        dtype_name(grad.dtype) + " for y " + to_string(y.shape) + " of " +
                                        dtype_name(y.dtype));
    const AxisShape s = around(operation, y.shape, axis);
    DeviceArray dx = empty(scope.context, y.shape, y.dtype);
    dispatch_float(operation, y.dtype, [&](auto type) {
        using T = decltype(type);
        softmax_backward(dx.as<T>(), grad.as<T>(), y.as<T>(), s, logarithm, scope.stream());
    });
    return dx;
}

LossReduction find_reduction(const std::string &name) {
    if (name == "mean")
        return LossReduction::mean;
    if (name == "sum")
        return LossReduction::sum;
    if (name == "none")
        return LossReduction::none;
    throw Refused("ArgumentError", "cross_entropy: reduction '" + name + "' is not one of mean, sum, none");
}

// f(labels' pointer): int32 and int64.
template <class F> void dispatch_label(const DeviceArray &labels, F &&f) {
    if (labels.dtype == DType::int64)
        f(labels.as<const int64_t>());
    else if (labels.dtype == DType::int32)
        f(labels.as<const int32_t>());
    else
        refuse_dtype("cross_entropy", labels.dtype);
}

void check_shapes(const Shape &logits, const Shape &labels) {
    if (logits.ndim != 2 || labels.ndim != 1 || labels[0] != logits[0])
        throw Refused("ShapeError", "cross_entropy: got labels " + to_string(labels) + " for logits " +
                                        to_string(logits) + ", expected one label a row");
}

std::pair<DeviceArray, DeviceArray> softmax_cross_entropy(const DeviceArray &logits, const DeviceArray &labels,
                                                          int64_t ignore_index, const std::string &reduction) {
    Scope scope("cross_entropy", logits, labels);
    check_shapes(logits.shape, labels.shape);
    const LossReduction how = find_reduction(reduction);
    const int64_t n = logits.shape[0], classes = logits.shape[1];
    DeviceArray log_probs = empty(scope.context, logits.shape, logits.dtype);
    DeviceArray loss = empty(scope.context, how == LossReduction::none ? Shape{n} : Shape{}, logits.dtype);
    Scratch losses(scope.context, how == LossReduction::none ? 0 : static_cast<size_t>(n) * item_size(logits.dtype));
    dispatch_float("cross_entropy", logits.dtype, [&](auto type) {
        using T = decltype(type);
        dispatch_label(labels, [&](auto *label) {
            cross_entropy_forward(loss.as<T>(), log_probs.as<T>(), losses.as<T>(), logits.as<const T>(), label, n,
                                  classes, ignore_index, how, scope.context.error_word(), scope.stream());
        });
    });
    return {loss, log_probs};
}

DeviceArray softmax_cross_entropy_backward(const DeviceArray &grad, const DeviceArray &log_probs,
                                           const DeviceArray &labels, int64_t ignore_index,
                                           const std::string &reduction) {
    Scope scope("cross_entropy_backward", grad, log_probs, labels);
    check_shapes(log_probs.shape, labels.shape);
    const LossReduction how = find_reduction(reduction);
    const int64_t n = log_probs.shape[0], classes = log_probs.shape[1];
    if (grad.dtype != log_probs.dtype || grad.count() != (how == LossReduction::none ? n : 1))
        throw Refused("ShapeError", "cross_entropy_backward: got grad " + to_string(grad.shape) + " of " +
                                        dtype_name(grad.dtype) + " for log_probs " + to_string(log_probs.shape));
    DeviceArray dlogits = empty(scope.context, log_probs.shape, log_probs.dtype);
    Scratch kept(scope.context, sizeof(double));
    dispatch_float("cross_entropy_backward", grad.dtype, [&](auto type) {
        using T = decltype(type);
        dispatch_label(labels, [&](auto *label) {
            cross_entropy_backward(dlogits.as<T>(), grad.as<const T>(), log_probs.as<const T>(), label, n, classes,
                                   ignore_index, how, kept.as<double>(), scope.stream());
        });
    });
    return dlogits;
}

} // namespace

void bind_softmax(nb::module_ &m) {
    m.def(
        "softmax", [](const DeviceArray &x, int64_t axis) { return forward("softmax", x, axis, false); }, "x"_a,
        "axis"_a);
    m.def(
        "log_softmax", [](const DeviceArray &x, int64_t axis) { return forward("log_softmax", x, axis, true); }, "x"_a,
        "axis"_a);
    m.def(
        "softmax_backward",
        [](const DeviceArray &grad, const DeviceArray &y, int64_t axis) {
            return backward("softmax_backward", grad, y, axis, false);
        },
        "grad"_a, "y"_a, "axis"_a);
    m.def(
        "log_softmax_backward",
        [](const DeviceArray &grad, const DeviceArray &y, int64_t axis) {
            return backward("log_softmax_backward", grad, y, axis, true);
        },
        "grad"_a, "y"_a, "axis"_a);
    m.def("softmax_cross_entropy", &softmax_cross_entropy, "logits"_a, "labels"_a, "ignore_index"_a, "reduction"_a);
    m.def("softmax_cross_entropy_backward", &softmax_cross_entropy_backward, "grad"_a, "log_probs"_a, "labels"_a,
          "ignore_index"_a, "reduction"_a);
}

} // namespace gradcuda
