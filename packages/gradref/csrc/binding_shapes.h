/* binding_shapes.h: the sizes of convolutions and pools, checked against the arrays; scratch memory. For bindings*.cpp.
 *
 * Every kernel trusts its sizes: what could read or write outside an array is refused here.
 */
#ifndef GRADREF_BINDING_SHAPES_H
#define GRADREF_BINDING_SHAPES_H

#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>

#include <limits>
#include <new>
#include <tuple>
#include <utility>

#include "binding_checks.h"
#include "gradref.h"

using In = nb::ndarray<nb::ro, nb::device::cpu>;
using Out = nb::ndarray<nb::device::cpu>;
using Pair = std::pair<int, int>;
using Conv = gradref_conv2d_shape;
using Pool = gradref_pool2d_shape;

void bind_fused(nb::module_ &m); /* bindings_fused.cpp */
void bind_dense(nb::module_ &m); /* bindings_dense.cpp */

/* Scratch of one call, at a cache line. Not zeroed: the kernels write before they read. */
struct Scratch {
    float *data;
    explicit Scratch(int64_t floats)
        : data(static_cast<float *>(::operator new(size_t(floats + 1) * sizeof(float), std::align_val_t(64)))) {}
    ~Scratch() { ::operator delete(data, std::align_val_t(64)); }
    Scratch(const Scratch &) = delete;
    Scratch &operator=(const Scratch &) = delete;
};

constexpr int64_t far = 1 << 24;

/* The sizes of a convolution, checked against x (or its sizes) and weight. */
template <typename W>
Conv conv_sizes(const char *op, const int64_t (&x)[4], const W &weight, Pair stride, Pair padding, Pair dilation,
                int64_t groups) {
    Conv s{};
    s.n = x[0], s.c = x[1], s.h = x[2], s.w = x[3];
    s.o = int64_t(weight.shape(0)), s.kh = int64_t(weight.shape(2)), s.kw = int64_t(weight.shape(3));
    std::tie(s.stride_h, s.stride_w) = stride;
    std::tie(s.pad_h, s.pad_w) = padding;
    std::tie(s.dilation_h, s.dilation_w) = dilation;
    s.groups = groups;
    check(s.stride_h > 0 && s.stride_w > 0, op, "stride must be at least 1");
    check(s.pad_h >= 0 && s.pad_w >= 0, op, "padding must not be negative");
    check(s.dilation_h > 0 && s.dilation_w > 0, op, "dilation must be at least 1");
    check(s.c > 0 && s.o > 0 && s.h > 0 && s.w > 0 && s.kh > 0 && s.kw > 0, op, "only the batch may be empty");
    /* beyond, sizes of scratch buffers could overflow */
    check(s.pad_h < far && s.pad_w < far && s.dilation_h < far / s.kh && s.dilation_w < far / s.kw, op,
          "padding or dilation is too large");
    check(groups > 0 && s.c % groups == 0 && s.o % groups == 0, op, "groups must divide both channel counts");
    check_shape(weight, {s.o, s.c / groups, s.kh, s.kw}, op, "weight");
    s.oh = (s.h + 2 * s.pad_h - s.dilation_h * (s.kh - 1) - 1);
    s.ow = (s.w + 2 * s.pad_w - s.dilation_w * (s.kw - 1) - 1);
    check(s.oh >= 0 && s.ow >= 0, op, "kernel is larger than the padded input");
    s.oh = s.oh / s.stride_h + 1, s.ow = s.ow / s.stride_w + 1;
    return s;
}

/* And against y. */
template <typename X, typename W, typename Y>
Conv conv_shape(const char *op, const X &x, const W &weight, const Y &y, const char *y_name, Pair stride, Pair padding,
                Pair dilation, int64_t groups) {
    const int64_t sizes[4] = {int64_t(x.shape(0)), int64_t(x.shape(1)), int64_t(x.shape(2)), int64_t(x.shape(3))};
    const Conv s = conv_sizes(op, sizes, weight, stride, padding, dilation, groups);
    check_shape(y, {s.n, s.o, s.oh, s.ow}, op, y_name);
    return s;
}

/* Does each of `out` windows along one axis hold an entry of the input? */
inline bool windows_filled(int64_t out, int64_t length, int64_t kernel, int64_t stride, int64_t pad, int64_t dilation) {
    for (int64_t i = 0; i < out; i++) {
        const int64_t start = i * stride - pad, skip = start < 0 ? (-start + dilation - 1) / dilation : 0;
        if (skip >= kernel || start + skip * dilation >= length)
            return false;
    }
    return true;
}

inline Pool pool_sizes(const char *op, int64_t planes, Pair size, Pair out, Pair kernel, Pair stride, Pair padding,
                       Pair dilation) {
    Pool s{};
    s.planes = planes;
    std::tie(s.h, s.w) = size;
    std::tie(s.oh, s.ow) = out;
    std::tie(s.kh, s.kw) = kernel;
    std::tie(s.stride_h, s.stride_w) = stride;
    std::tie(s.pad_h, s.pad_w) = padding;
    std::tie(s.dilation_h, s.dilation_w) = dilation;
    check(s.kh > 0 && s.kw > 0, op, "kernel must be at least 1");
    check(s.stride_h > 0 && s.stride_w > 0, op, "stride must be at least 1");
    check(s.pad_h >= 0 && s.pad_w >= 0, op, "padding must not be negative");
    check(s.dilation_h > 0 && s.dilation_w > 0, op, "dilation must be at least 1");
    check(s.h <= std::numeric_limits<int32_t>::max() / (s.w ? s.w : 1), op, "a plane is too large for int32 indices");
    check(windows_filled(s.oh, s.h, s.kh, s.stride_h, s.pad_h, s.dilation_h) &&
              windows_filled(s.ow, s.w, s.kw, s.stride_w, s.pad_w, s.dilation_w),
          op, "a window lies wholly outside the input");
    return s;
}

template <typename X, typename Y>
Pool pool_shape(const char *op, const X &x, const Y &y, const char *y_name, Pair kernel, Pair stride, Pair padding,
                Pair dilation) {
    const int64_t n = int64_t(x.shape(0)), c = int64_t(x.shape(1)), oh = int64_t(y.shape(2)), ow = int64_t(y.shape(3));
    check_shape(y, {n, c, oh, ow}, op, y_name);
    return pool_sizes(op, n * c, Pair(int(x.shape(2)), int(x.shape(3))), Pair(int(oh), int(ow)), kernel, stride,
                      padding, dilation);
}

#endif
