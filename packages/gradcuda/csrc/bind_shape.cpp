// Shape operations. reshape is free; the others copy, as arrays are always contiguous.
#include "bind.h"

#include "shape.h"

namespace gradcuda {

namespace {

DeviceArray reshape(const DeviceArray &x, Shape shape) {
    int64_t known = 1;
    int open = -1;
    for (int i = 0; i < shape.ndim; ++i) {
        if (shape[i] < 0)
            open = i;
        else
            known *= shape[i];
    }
    if (open >= 0 && known > 0)
        shape[open] = x.count() / known;
    if (shape.count() != x.count())
        throw Refused("ShapeError", "reshape: " + to_string(x.shape) + " to " + to_string(shape));
    return x.view(shape);
}

// out = x read with these strides from element `start` on.
DeviceArray gather(const char *name, const DeviceArray &x, const Shape &shape, const Strides &strides, int64_t start) {
    Scope scope(name, x);
    DeviceArray out = empty(scope.context, shape, x.dtype);
    if (out.count() > 0)
        gather_launch(item_size(x.dtype), out.data(), x.data(), make_layout(shape, {strides}), start, out.count(),
                      scope.stream());
    return out;
}

DeviceArray permute_dims(const DeviceArray &x, const Shape &axes) {
    const Strides all = contiguous_strides(x.shape);
    Shape shape;
    Strides strides;
    int64_t before = -1;
    bool moves = false; // axes of one may go anywhere
    if (axes.ndim != x.shape.ndim)
        throw Refused("ShapeError", "permute_dims: axes " + to_string(axes) + " for " + to_string(x.shape));
    for (int i = 0; i < axes.ndim; ++i) {
        const int64_t axis = axes[i];
        if (axis < 0 || axis >= x.shape.ndim)
            throw Refused("ShapeError", "permute_dims: axes " + to_string(axes) + " for " + to_string(x.shape));
        strides[i] = all[static_cast<int>(axis)];
        shape.push(x.shape[static_cast<int>(axis)]);
        if (shape[i] != 1) {
            moves = moves || axis < before;
            before = axis;
        }
    }
    return moves ? gather("permute_dims", x, shape, strides, 0) : x.view(shape);
}

DeviceArray broadcast_to(const DeviceArray &x, const Shape &shape) {
    if (x.count() == shape.count() && shape.ndim >= x.shape.ndim)
        return broadcast_strides("broadcast_to", x.shape, shape), x.view(shape);
    return gather("broadcast_to", x, shape, broadcast_strides("broadcast_to", x.shape, shape), 0);
}

struct Slice {
    Shape shape;
    Strides strides;
    int64_t start = 0;
};

Slice slice_of(const Shape &x, const Shape &starts, const Shape &stops, const Shape &steps) {
    if (starts.ndim != x.ndim || stops.ndim != x.ndim || steps.ndim != x.ndim)
        throw Refused("ShapeError", "strided_slice: one start, stop and step an axis of " + to_string(x));
    const Strides all = contiguous_strides(x);
    Slice slice;
    for (int i = 0; i < x.ndim; ++i) {
        const int64_t step = steps[i], span = step > 0 ? stops[i] - starts[i] : starts[i] - stops[i];
        const int64_t stride = step > 0 ? step : -step, n = step != 0 && span > 0 ? (span + stride - 1) / stride : 0;
        const int64_t last = starts[i] + (n - 1) * step;
        if (n > 0 && (starts[i] < 0 || starts[i] >= x[i] || last < 0 || last >= x[i]))
            throw Refused("ShapeError", "strided_slice: axis " + std::to_string(i) + " of " + to_string(x) +
                                            " has no elements " + std::to_string(starts[i]) + " to " +
                                            std::to_string(last));
        slice.shape.push(n);
        slice.strides[i] = all[i] * step;
        slice.start += n > 0 ? all[i] * starts[i] : 0;
    }
    return slice;
}

DeviceArray strided_slice(const DeviceArray &x, const Shape &starts, const Shape &stops, const Shape &steps) {
    const Slice slice = slice_of(x.shape, starts, stops, steps);
    return gather("strided_slice", x, slice.shape, slice.strides, slice.start);
}

DeviceArray strided_slice_backward(const DeviceArray &grad, const Shape &shape, const Shape &starts, const Shape &stops,
                                   const Shape &steps) {
    Scope scope("strided_slice_backward", grad);
    const Slice slice = slice_of(shape, starts, stops, steps);
    if (slice.shape.count() != grad.count())
        throw Refused("ShapeError", "strided_slice_backward: got a gradient of " + to_string(grad.shape));
    DeviceArray out = empty(scope.context, shape, grad.dtype);
    if (out.count() > 0)
        fill_launch(item_size(out.dtype), out.data(), 0, out.count(), scope.stream());
    if (grad.count() > 0)
        place_launch(item_size(out.dtype), out.data(), grad.data(), make_layout(slice.shape, {slice.strides}),
                     slice.start, grad.count(), scope.stream());
    return out;
}

DeviceArray concat(const std::vector<DeviceArray> &arrays, int64_t axis) {
    if (arrays.empty())
        throw Refused("ShapeError", "concat: no arrays");
    const DeviceArray &first = arrays[0];
    if (axis < 0 || axis >= first.shape.ndim)
        throw Refused("ShapeError", "concat: no axis " + std::to_string(axis) + " in " + to_string(first.shape));
    const int at = static_cast<int>(axis);
    Shape shape = first.shape;
    shape[at] = 0;
    for (const DeviceArray &array : arrays) {
        Shape expected = first.shape;
        expected[at] = array.shape.ndim == first.shape.ndim ? array.shape[at] : -1;
        if (array.shape != expected || array.dtype != first.dtype)
            throw Refused("ShapeError", "concat: " + to_string(array.shape) + " " + dtype_name(array.dtype) +
                                            " after " + to_string(first.shape) + " " + dtype_name(first.dtype));
        shape[at] += array.shape[at];
    }
    Scope scope("concat", first, arrays.back());
    DeviceArray out = empty(scope.context, shape, first.dtype);
    const Strides strides = contiguous_strides(shape);
    int64_t start = 0;
    for (const DeviceArray &array : arrays) {
        if (array.count() > 0)
            place_launch(item_size(out.dtype), out.data(), array.data(), make_layout(array.shape, {strides}), start,
                         array.count(), scope.stream());
        start += array.shape[at] * strides[at];
    }
    return out;
}

DeviceArray astype(const DeviceArray &x, DType dtype) {
    Scope scope("astype", x);
    DeviceArray out = empty(scope.context, x.shape, dtype);
    if (out.count() > 0 && dtype == x.dtype)
        copy_launch(out.data(), x.data(), static_cast<int64_t>(x.bytes()), scope.stream());
    else if (out.count() > 0)
        astype_launch(dtype, out.data(), x.dtype, x.data(), x.count(), scope.stream());
    return out;
}

void copy_(const DeviceArray &destination, const DeviceArray &source) {
    Scope scope("copy_", destination, source);
    if (destination.shape != source.shape || destination.dtype != source.dtype)
        throw Refused("ShapeError", "copy_: " + to_string(source.shape) + " " + dtype_name(source.dtype) + " into " +
                                        to_string(destination.shape) + " " + dtype_name(destination.dtype));
    if (destination.count() > 0 && destination.data() != source.data())
        copy_launch(destination.data(), source.data(), static_cast<int64_t>(source.bytes()), scope.stream());
}

// buffer[cursor] = value, cursor += 1.
void append_(const DeviceArray &buffer, const DeviceArray &cursor, const DeviceArray &value) {
    Scope scope("append_", buffer, cursor, value);
    if (value.count() != 1 || cursor.count() != 1 || cursor.dtype != DType::int64 || value.dtype != buffer.dtype)
        throw Refused("ShapeError", "append_: one " + std::string(dtype_name(buffer.dtype)) + " and an int64 cursor");
    append_launch(item_size(buffer.dtype), buffer.data(), value.data(), cursor.as<int64_t>(), buffer.count(),
                  scope.stream());
}

} // namespace

void bind_shape(nb::module_ &m) {
    m.def("reshape", &reshape, "x"_a, "shape"_a);
    m.def("permute_dims", &permute_dims, "x"_a, "axes"_a);
    m.def("broadcast_to", &broadcast_to, "x"_a, "shape"_a);
    m.def("concat", &concat, "arrays"_a, "axis"_a);
    m.def("strided_slice", &strided_slice, "x"_a, "starts"_a, "stops"_a, "steps"_a);
    m.def("strided_slice_backward", &strided_slice_backward, "grad"_a, "shape"_a, "starts"_a, "stops"_a, "steps"_a);
    m.def("astype", &astype, "x"_a, "dtype"_a);
    m.def("copy_", &copy_, "destination"_a, "source"_a);
    m.def("append_", &append_, "buffer"_a, "cursor"_a, "value"_a);
}

} // namespace gradcuda
