// How Python calls in: casts, and the list of binding files. Only bind_*.cpp and bindings.cpp include this.
//
// A bind_NAME.cpp holds plain functions that check what gradcore.ops does not (dtypes that have no kernel), allocate
// outputs, call launchers, and one `void bind_NAME(nb::module_ &m)` with a line each:
//
//     static std::pair<DeviceArray, DeviceArray> max_pool2d(const DeviceArray &x, Pair kernel, ...) {
//         Scope scope("max_pool2d", x);                                   // context, stream(), all checks
//         DeviceArray y = empty(scope.context, {x.shape[0], x.shape[1], out.first, out.second}, x.dtype);
//         if (y.count() > 0)
//             max_pool2d_launch(y.as<float>(), x.as<float>(), ..., scope.stream());
//         return {y, indices};
//     }
//     void bind_pool2d(nb::module_ &m) { m.def("max_pool2d", &max_pool2d, "x"_a, "kernel"_a, ...); }
//
// backend.py names each bound function in the class body (`max_pool2d = staticmethod(_ext.max_pool2d)`), so a call has
// no Python frame. An optional array is `std::optional<DeviceArray>` with "bias"_a.none(). The interpreter lock is
// released only where the host waits (synchronize, copies to the host).
#pragma once

#include "array.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

namespace gradcuda {

namespace nb = nanobind;
using namespace nb::literals;

using Pair = std::pair<int64_t, int64_t>; // rows, columns

// NumPy's own dtype objects, in the order of DType; gradcore compares them with `is`. Filled by bind_array.
extern PyObject *dtype_objects[6];

// The dtype that NumPy makes of an object; Refused("DTypeError") for those without kernels.
bool find_dtype(PyObject *object, DType &out);

// An element type that this operation has no kernel for.
[[noreturn]] void refuse_dtype(const char *operation, DType dtype);

// float32 and float64 only, as most kernels.
inline void require_float(const char *operation, DType dtype) {
    if (!is_float(dtype))
        refuse_dtype(operation, dtype);
}

// f(float()) or f(double()) by dtype; others are refused: dispatch_float("exp", x.dtype, [&](auto t) { ... }).
template <typename F> void dispatch_float(const char *operation, DType dtype, F &&f) {
    if (dtype == DType::float32)
        f(float());
    else if (dtype == DType::float64)
        f(double());
    else
        refuse_dtype(operation, dtype);
}

void bind_array(nb::module_ &m);
void bind_context(nb::module_ &m);
void bind_elementwise(nb::module_ &m);
void bind_reduce(nb::module_ &m);
void bind_shape(nb::module_ &m);
void bind_indexing(nb::module_ &m);
void bind_matmul(nb::module_ &m);
void bind_graph(nb::module_ &m);
void bind_planted(nb::module_ &m);
void bind_conv2d(nb::module_ &m);
void bind_pool2d(nb::module_ &m);
void bind_softmax(nb::module_ &m);
void bind_optim(nb::module_ &m);
void bind_norm(nb::module_ &m);

} // namespace gradcuda

namespace nanobind::detail {

// A tuple or list of integers.
template <> struct type_caster<gradcuda::Shape> {
    NB_TYPE_CASTER(gradcuda::Shape, const_name("tuple[int, ...]"))

    bool from_python(handle src, uint8_t, cleanup_list *) noexcept {
        value = gradcuda::Shape();
        if (!PyTuple_Check(src.ptr()) && !PyList_Check(src.ptr()))
            return false;
        PyObject *const object = src.ptr();
        const Py_ssize_t n = PySequence_Size(object);
        if (n > gradcuda::MAX_DIMS)
            return false;
        for (Py_ssize_t i = 0; i < n; ++i) {
            PyObject *item = PySequence_GetItem(object, i);
            const long long size = item == nullptr ? -1 : PyLong_AsLongLong(item);
            Py_XDECREF(item);
            if (size == -1 && PyErr_Occurred()) {
                PyErr_Clear();
                return false;
            }
            value.size[value.ndim++] = size;
        }
        return true;
    }

    static handle from_cpp(const gradcuda::Shape &shape, rv_policy, cleanup_list *) noexcept {
        PyObject *tuple = PyTuple_New(shape.ndim);
        for (int i = 0; tuple != nullptr && i < shape.ndim; ++i)
            if (PyTuple_SetItem(tuple, i, PyLong_FromLongLong(shape.size[i])) != 0) {
                Py_DECREF(tuple);
                return nullptr;
            }
        return tuple;
    }
};

// Whatever numpy.dtype() takes; out comes NumPy's own object.
template <> struct type_caster<gradcuda::DType> {
    NB_TYPE_CASTER(gradcuda::DType, const_name("numpy.typing.DTypeLike"))

    bool from_python(handle src, uint8_t, cleanup_list *) noexcept { return gradcuda::find_dtype(src.ptr(), value); }
    static handle from_cpp(gradcuda::DType dtype, rv_policy, cleanup_list *) noexcept {
        PyObject *object = gradcuda::dtype_objects[static_cast<int>(dtype)];
        Py_INCREF(object);
        return object;
    }
};

} // namespace nanobind::detail
