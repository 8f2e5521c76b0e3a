// Elementwise operations: which of the kernels serves these operands.
//
// A call is made once for each operation of a step, so it is kept short: no Python frame, no string, one allocation.
#include "bind.h"

#include "elementwise.h"
#include "scalar.h"
#include "shape.h"

#include <cmath>

namespace gradcuda {

namespace {

const DeviceArray *array_of(nb::handle object) {
    return nb::isinstance<DeviceArray>(object) ? nb::inst_ptr<DeviceArray>(object) : nullptr;
}

DeviceArray as_float64(const DeviceArray &x, cudaStream_t stream) {
    DeviceArray out = empty(x.context(), x.shape, DType::float64);
    if (out.count() > 0)
        astype_launch(DType::float64, out.data(), x.dtype, x.data(), x.count(), stream);
    return out;
}

DeviceArray binary_arrays(BinaryOp op, const char *name, const DeviceArray &a, const DeviceArray &b) {
    Scope scope(name, a, b);
    if (a.dtype != b.dtype)
        throw Refused("DTypeError", std::string(name) + ": got " + dtype_name(a.dtype) + " and " + dtype_name(b.dtype));
    if (op == BinaryOp::divide && !is_float(a.dtype))
        return binary_arrays(op, name, as_float64(a, scope.stream()), as_float64(b, scope.stream()));
    const Shape shape = a.shape == b.shape ? a.shape : broadcast_shapes(name, {&a.shape, &b.shape});
    const DType dtype = op >= BinaryOp::greater ? DType::boolean : a.dtype;
    DeviceArray out = empty(scope.context, shape, dtype);
    const int64_t n = out.count();
    if (n == 0)
        return out;
    const bool a_single = a.count() == 1 && n > 1, b_single = b.count() == 1 && n > 1;
    if ((a_single || a.count() == n) && (b_single || b.count() == n))
        binary_flat_launch(op, a.dtype, out.data(), {a.data(), 0.0, 0, a_single}, {b.data(), 0.0, 0, b_single}, n,
                           scope.stream());
    else
        binary_broadcast_launch(
            op, a.dtype, out.data(), a.data(), b.data(),
            make_layout(shape, {broadcast_strides(name, a.shape, shape), broadcast_strides(name, b.shape, shape)}), n,
            scope.stream());
    return out;
}

DeviceArray binary_scalar(BinaryOp op, const char *name, const DeviceArray &x, nb::handle number, bool number_first) {
    Scope scope(name, x);
    if (op == BinaryOp::divide && !is_float(x.dtype))
        return binary_scalar(op, name, as_float64(x, scope.stream()), number, number_first);
    const Operand scalar = scalar_operand(name, number, x.dtype);
    DeviceArray out = empty(scope.context, x.shape, op >= BinaryOp::greater ? DType::boolean : x.dtype);
    const Operand array = {x.data(), 0.0, 0, false};
    if (out.count() > 0)
        binary_flat_launch(op, x.dtype, out.data(), number_first ? scalar : array, number_first ? array : scalar,
                           out.count(), scope.stream());
    return out;
}

DeviceArray binary(BinaryOp op, const char *name, nb::handle a, nb::handle b) {
    const DeviceArray *x = array_of(a), *y = array_of(b);
    if (x != nullptr && y != nullptr)
        return binary_arrays(op, name, *x, *y);
    if (x == nullptr && y == nullptr)
        throw nb::type_error((std::string(name) + ": one of the two operands must be a DeviceArray").c_str());
    return x != nullptr ? binary_scalar(op, name, *x, b, false) : binary_scalar(op, name, *y, a, true);
}

DeviceArray unary(UnaryOp op, const char *name, const DeviceArray &x) {
    Scope scope(name, x);
    const bool any_type = op == UnaryOp::negative || op == UnaryOp::abs || op == UnaryOp::sign || op == UnaryOp::relu;
    if (!any_type)
        require_float(name, x.dtype);
    DeviceArray out = empty(scope.context, x.shape, x.dtype);
    if (out.count() > 0)
        unary_launch(op, x.dtype, out.data(), x.data(), out.count(), scope.stream());
    return out;
}

// A backward from grad and the output y, of equal shape and float type.
DeviceArray from_output(BinaryOp op, const char *name, const DeviceArray &grad, const DeviceArray &y) {
    require_float(name, grad.dtype);
    return binary_arrays(op, name, grad, y);
}

DeviceArray where(const DeviceArray &condition, nb::handle a, nb::handle b) {
    const DeviceArray *x = array_of(a), *y = array_of(b);
    if (x == nullptr && y == nullptr)
        throw nb::type_error("where: one of the two choices must be a DeviceArray");
    const DeviceArray &first = x != nullptr ? *x : *y, &second = y != nullptr ? *y : *x;
    Scope scope("where", condition, first, second);
    if (condition.dtype != DType::boolean || first.dtype != second.dtype)
        throw Refused("DTypeError", std::string("where: got ") + dtype_name(condition.dtype) + ", " +
                                        dtype_name(first.dtype) + " and " + dtype_name(second.dtype));
    const DType dtype = first.dtype;
    const uint64_t a_bits = x != nullptr ? 0 : scalar_bits(dtype, scalar_operand("where", a, dtype));
    const uint64_t b_bits = y != nullptr ? 0 : scalar_bits(dtype, scalar_operand("where", b, dtype));
    const Shape shape = broadcast_shapes("where", {&condition.shape, &first.shape, &second.shape});
    const auto strides = [&](const DeviceArray *one) {
        return one == nullptr ? Strides() : broadcast_strides("where", one->shape, shape);
    };
    DeviceArray out = empty(scope.context, shape, dtype);
    if (out.count() > 0)
        where_launch(item_size(dtype), out.data(), condition.as<bool>(), x != nullptr ? x->data() : nullptr, a_bits,
                     y != nullptr ? y->data() : nullptr, b_bits,
                     make_layout(shape, {strides(&condition), strides(x), strides(y)}), out.count(), scope.stream());
    return out;
}

} // namespace

Operand scalar_operand(const char *operation, nb::handle number, DType dtype) {
    Operand operand;
    operand.single = true;
    PyObject *whole = PyFloat_Check(number.ptr()) ? nullptr : PyNumber_Index(number.ptr());
    if (whole != nullptr) {
        operand.integer = PyLong_AsLongLong(whole);
        operand.real = PyLong_AsDouble(whole);
        Py_DECREF(whole);
        if (PyErr_Occurred())
            throw nb::python_error();
        return operand;
    }
    PyErr_Clear();
    operand.real = PyFloat_AsDouble(number.ptr());
    if (PyErr_Occurred())
        throw nb::python_error();
    if (!is_float(dtype)) {
        if (!(std::fabs(operand.real) < 9.0e18) || operand.real != std::trunc(operand.real))
            throw Refused("DTypeError", std::string(operation) + ": the number " + std::to_string(operand.real) +
                                            " does not fit an array of " + dtype_name(dtype));
        operand.integer = static_cast<int64_t>(operand.real);
    }
    return operand;
}

// The functions differ in the operation only; a lambda without captures is a plain function pointer.
#define BIND_BINARY(NAME)                                                                                              \
    m.def(                                                                                                             \
        #NAME, [](nb::handle a, nb::handle b) { return binary(BinaryOp::NAME, #NAME, a, b); }, "a"_a, "b"_a,           \
        nb::sig("def " #NAME "(a: DeviceArray | float, b: DeviceArray | float) -> DeviceArray"))
#define BIND_UNARY(NAME) m.def(#NAME, [](const DeviceArray &x) { return unary(UnaryOp::NAME, #NAME, x); }, "x"_a)
#define BIND_FROM_OUTPUT(NAME)                                                                                         \
    m.def(                                                                                                             \
        #NAME,                                                                                                         \
        [](const DeviceArray &grad, const DeviceArray &y) { return from_output(BinaryOp::NAME, #NAME, grad, y); },     \
        "grad"_a, "y"_a)

void bind_elementwise(nb::module_ &m) {
    BIND_BINARY(add);
    BIND_BINARY(subtract);
    BIND_BINARY(multiply);
    BIND_BINARY(divide);
    BIND_BINARY(power);
    BIND_BINARY(maximum);
    BIND_BINARY(greater);
    BIND_BINARY(greater_equal);
    BIND_BINARY(equal);
    BIND_UNARY(negative);
    BIND_UNARY(abs);
    BIND_UNARY(sign);
    BIND_UNARY(exp);
    BIND_UNARY(log);
    BIND_UNARY(log1p);
    BIND_UNARY(sqrt);
    BIND_UNARY(tanh);
    BIND_UNARY(relu);
    BIND_UNARY(sigmoid);
    BIND_FROM_OUTPUT(relu_backward);
    BIND_FROM_OUTPUT(sigmoid_backward);
    BIND_FROM_OUTPUT(tanh_backward);
    m.def("where", &where, "condition"_a, "a"_a, "b"_a,
          nb::sig("def where(condition: DeviceArray, a: DeviceArray | float, b: DeviceArray | float) -> DeviceArray"));
}

} // namespace gradcuda
