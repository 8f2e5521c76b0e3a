/* binding_checks.h: checks of array arguments, with errors that name operation, argument and what is wrong.
 *
 * "conv2d: x must be float32, got float64". TypeError for a dtype, ValueError for the rest. Used by bindings.cpp only.
 */
#ifndef GRADREF_BINDING_CHECKS_H
#define GRADREF_BINDING_CHECKS_H

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <initializer_list>
#include <string>
#include <type_traits>

namespace nb = nanobind;

inline std::string text(const char *op, const char *name) { return std::string(op) + ": " + name; }

inline std::string dtype_name(nb::dlpack::dtype t) {
    const char *const kinds[] = {"int", "uint", "float", "handle", "bfloat", "complex", "bool"};
    const std::string kind = t.code < 7 ? kinds[t.code] : "type";
    return kind == "bool" ? kind : kind + std::to_string(t.bits);
}

template <typename Array> std::string shape_name(const Array &a) {
    std::string s = "(";
    for (size_t i = 0; i < a.ndim(); i++)
        s += (i ? ", " : "") + std::to_string(a.shape(i));
    return s + (a.ndim() == 1 ? ",)" : ")");
}

/* The data of an array, once its dtype, rank and layout are right. */
template <typename T, typename Array> T *data(const Array &a, size_t ndim, const char *op, const char *name) {
    if (a.dtype() != nb::dtype<std::remove_const_t<T>>())
        throw nb::type_error((text(op, name) + " must be " + dtype_name(nb::dtype<std::remove_const_t<T>>()) +
                              ", got " + dtype_name(a.dtype()))
                                 .c_str());
    if (a.ndim() != ndim)
        throw nb::value_error((text(op, name) + " must have " + std::to_string(ndim) + (ndim == 1 ? " axis" : " axes") +
                               ", got shape " + shape_name(a))
                                  .c_str());
    int64_t expected = 1;
    for (size_t i = ndim; a.size() && i-- > 0; expected *= int64_t(a.shape(i)))
        if (a.shape(i) != 1 && a.stride(i) != expected)
            throw nb::value_error((text(op, name) + " must be C-contiguous").c_str());
    return (T *)a.data();
}

template <typename Array>
void check_shape(const Array &a, std::initializer_list<int64_t> shape, const char *op, const char *name) {
    std::string wanted;
    size_t i = 0;
    bool equal = true;
    for (int64_t n : shape) {
        equal = equal && int64_t(a.shape(i++)) == n;
        wanted += (wanted.empty() ? "" : ", ") + std::to_string(n);
    }
    if (!equal)
        throw nb::value_error(
            (text(op, name) + " must have shape (" + wanted + (i == 1 ? ",)" : ")") + ", got " + shape_name(a))
                .c_str());
}

inline void check(bool good, const char *op, const char *what) {
    if (!good)
        throw nb::value_error(text(op, what).c_str());
}

#endif
