// Reductions: axes from Python, workspace for long ones.
#include "bind.h"

#include "reduce.h"
#include "shape.h"

namespace gradcuda {

namespace {

using Axes = std::optional<Shape>; // a tuple of axes, all of them for None

Shape reduced_shape(const Shape &shape, const bool (&reduced)[MAX_DIMS], bool keepdims) {
    Shape out;
    for (int i = 0; i < shape.ndim; ++i) {
        if (!reduced[i])
            out.push(shape[i]);
        else if (keepdims)
            out.push(1);
    }
    return out;
}

void mark(const char *operation, const Shape &shape, const Axes &axes, bool (&reduced)[MAX_DIMS]) {
    for (int i = 0; i < MAX_DIMS; ++i)
        reduced[i] = !axes.has_value() && i < shape.ndim;
    for (int i = 0; axes.has_value() && i < axes->ndim; ++i) {
        const int64_t axis = (*axes)[i];
        if (axis < 0 || axis >= shape.ndim)
            throw Refused("ShapeError",
                          std::string(operation) + ": no axis " + std::to_string(axis) + " in " + to_string(shape));
        reduced[axis] = true;
    }
}

DeviceArray reduce(ReduceOp op, const char *name, const DeviceArray &x, const bool (&reduced)[MAX_DIMS],
                   const Shape &shape) {
    Scope scope(name, x);
    const DType dtype = reduced_dtype(op, x.dtype);
    DeviceArray out = empty(scope.context, shape, dtype);
    if (out.count() == 0)
        return out;
    const Reduction reduction = make_reduction(x.shape, reduced);
    if (op == ReduceOp::max && reduction.count == 0)
        throw Refused("ShapeError", "max: no entries to choose from in " + to_string(x.shape));
    if (reduction.count == 1) {
        astype_launch(dtype, out.data(), x.dtype, x.data(), out.count(), scope.stream());
        return out;
    }
    Scratch workspace(scope.context, static_cast<size_t>(reduce_workspace(reduction)) * item_size(dtype));
    reduce_launch(op, x.dtype, out.data(), x.data(), reduction, workspace.as<void>(), scope.stream());
    return out;
}

DeviceArray reduce_axes(ReduceOp op, const char *name, const DeviceArray &x, const Axes &axes, bool keepdims) {
    bool reduced[MAX_DIMS];
    mark(name, x.shape, axes, reduced);
    return reduce(op, name, x, reduced, reduced_shape(x.shape, reduced, keepdims));
}

DeviceArray sum(const DeviceArray &x, const Axes &axis, bool keepdims) {
    return reduce_axes(ReduceOp::sum, "sum", x, axis, keepdims);
}

DeviceArray max(const DeviceArray &x, const Axes &axis, bool keepdims) {
    return reduce_axes(ReduceOp::max, "max", x, axis, keepdims);
}

// Undo a broadcast: sum over the axes along which `shape` was stretched.
DeviceArray sum_to(const DeviceArray &x, const Shape &shape) {
    const int lead = x.shape.ndim - shape.ndim;
    if (lead < 0)
        throw Refused("ShapeError", "sum_to: " + to_string(x.shape) + " to " + to_string(shape));
    bool reduced[MAX_DIMS] = {};
    for (int i = 0; i < x.shape.ndim; ++i)
        reduced[i] = i < lead || (shape[i - lead] == 1 && x.shape[i] != 1);
    return reduce(ReduceOp::sum, "sum_to", x, reduced, shape);
}

DeviceArray argmax(const DeviceArray &x, std::optional<int64_t> axis, bool keepdims) {
    Scope scope("argmax", x);
    Axes axes;
    if (axis.has_value())
        axes = Shape{*axis};
    bool reduced[MAX_DIMS];
    mark("argmax", x.shape, axes, reduced);
    const Reduction reduction = make_reduction(x.shape, reduced);
    DeviceArray out = empty(scope.context, reduced_shape(x.shape, reduced, keepdims), DType::int64);
    if (out.count() == 0)
        return out;
    if (reduction.count == 0)
        throw Refused("ShapeError", "argmax: no entries to choose from in " + to_string(x.shape));
    argmax_launch(x.dtype, out.as<int64_t>(), x.data(), reduction, scope.stream());
    return out;
}

} // namespace

void bind_reduce(nb::module_ &m) {
    m.def("sum", &sum, "x"_a, "axis"_a.none(), "keepdims"_a);
    m.def("max", &max, "x"_a, "axis"_a.none(), "keepdims"_a);
    m.def("argmax", &argmax, "x"_a, "axis"_a.none(), "keepdims"_a);
    m.def("sum_to", &sum_to, "x"_a, "shape"_a);
}

} // namespace gradcuda
