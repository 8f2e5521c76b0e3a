// take, take_backward, the rows of a batch; and random numbers.
#include "bind.h"

#include "scalar.h"
#include "shape.h"

namespace gradcuda {

namespace {

TakeIndices indices_of(const char *operation, const DeviceArray &indices) {
    if (indices.dtype != DType::int32 && indices.dtype != DType::int64)
        throw Refused("DTypeError",
                      std::string(operation) + ": indices must be int32 or int64, got " + dtype_name(indices.dtype));
    return {indices.data(), indices.dtype == DType::int64};
}

int checked_axis(const char *operation, const Shape &shape, int64_t axis) {
    if (axis < 0 || axis >= shape.ndim)
        throw Refused("ShapeError",
                      std::string(operation) + ": no axis " + std::to_string(axis) + " in " + to_string(shape));
    return static_cast<int>(axis);
}

DeviceArray take(const DeviceArray &x, const DeviceArray &indices, int64_t axis) {
    Scope scope("take", x, indices);
    const int at = checked_axis("take", x.shape, axis);
    TakeShape s = {1, x.shape[at], indices.count(), 1};
    Shape shape;
    for (int i = 0; i < at; ++i) {
        shape.push(x.shape[i]);
        s.outer *= x.shape[i];
    }
    for (int i = 0; i < indices.shape.ndim; ++i)
        shape.push(indices.shape[i]);
    for (int i = at + 1; i < x.shape.ndim; ++i) {
        shape.push(x.shape[i]);
        s.inner *= x.shape[i];
    }
    const TakeIndices from = indices_of("take", indices);
    DeviceArray out = empty(scope.context, shape, x.dtype);
    if (out.count() > 0)
        take_launch(item_size(x.dtype), out.data(), x.data(), from, s, nan_bits(x.dtype), scope.context.error_word(),
                    scope.stream());
    return out;
}

DeviceArray take_backward(const DeviceArray &grad, const DeviceArray &indices, int64_t axis, int64_t length) {
    Scope scope("take_backward", grad, indices);
    require_float("take_backward", grad.dtype);
    const int at = static_cast<int>(axis), behind = at + indices.shape.ndim;
    if (axis < 0 || behind > grad.shape.ndim)
        throw Refused("ShapeError", "take_backward: no axis " + std::to_string(axis) + " in " + to_string(grad.shape));
    TakeShape s = {1, length, indices.count(), 1};
    Shape shape;
    for (int i = 0; i < at; ++i) {
        shape.push(grad.shape[i]);
        s.outer *= grad.shape[i];
    }
    shape.push(length);
    for (int i = behind; i < grad.shape.ndim; ++i) {
        shape.push(grad.shape[i]);
        s.inner *= grad.shape[i];
    }
    const TakeIndices from = indices_of("take_backward", indices);
    DeviceArray out = empty(scope.context, shape, grad.dtype);
    if (out.count() > 0)
        take_backward_launch(grad.dtype, out.data(), grad.data(), from, s, scope.context.error_word(), scope.stream());
    return out;
}

// Rows order[cursor : cursor + size] of x, the cursor read by the kernel: a recorded graph goes on from where it
// stands.
DeviceArray take_batch(const DeviceArray &x, const DeviceArray &order, const DeviceArray &cursor, int64_t size) {
    Scope scope("take_batch", x, order, cursor);
    const int at = checked_axis("take_batch", x.shape, 0);
    if (cursor.count() != 1 || cursor.dtype != DType::int64 || size < 0)
        throw Refused("DTypeError", "take_batch: the cursor must be one int64, the size at least 0");
    Shape shape = x.shape;
    shape[at] = size;
    TakeIndices from = indices_of("take_batch", order);
    from.cursor = cursor.as<int64_t>();
    from.available = order.count();
    DeviceArray out = empty(scope.context, shape, x.dtype);
    if (out.count() > 0)
        take_launch(item_size(x.dtype), out.data(), x.data(), from, {1, x.shape[at], size, out.count() / size},
                    nan_bits(x.dtype), scope.context.error_word(), scope.stream());
    return out;
}

DeviceArray random_uniform(const Shape &shape, const nb::int_ &key, const DeviceArray &counter) {
    Scope scope("random_uniform", counter);
    if (counter.count() != 1 || counter.dtype != DType::int64)
        throw Refused("DTypeError", "random_uniform: the counter must be one int64");
    const uint64_t bits = PyLong_AsUnsignedLongLongMask(key.ptr()); // modulo 2**64
    DeviceArray out = empty(scope.context, shape, DType::float32);
    if (out.count() > 0)
        random_uniform_launch(out.as<float>(), counter.as<int64_t>(), bits, out.count(), scope.stream());
    return out;
}

} // namespace

void bind_indexing(nb::module_ &m) {
    m.def("take", &take, "x"_a, "indices"_a, "axis"_a);
    m.def("take_backward", &take_backward, "grad"_a, "indices"_a, "axis"_a, "length"_a);
    m.def("take_batch", &take_batch, "x"_a, "order"_a, "cursor"_a, "size"_a);
    m.def("random_uniform", &random_uniform, "shape"_a, "key"_a, "counter"_a);
}

} // namespace gradcuda
