/* bindings.cpp: the kernels as Python functions. nanobind and checks only; no arithmetic.
 *
 * Every function takes its output first, allocated by the caller (backend.py), and overwrites it. Arrays must have the
 * right dtype, rank and shape and be C-contiguous; nothing is converted or copied. They are taken untyped and checked
 * here, because nanobind's own message names neither dtype nor layout. The interpreter lock is released while a kernel
 * runs. Errors: TypeError for a dtype, ValueError for the rest, MemoryError.
 * Helpers: binding_checks.h.
 */
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include <limits>
#include <new>
#include <optional>
#include <tuple>
#include <utility>

#include "binding_checks.h"
#include "gradref.h"

namespace nb = nanobind;
using namespace nb::literals;
using In = nb::ndarray<nb::ro, nb::device::cpu>;
using Out = nb::ndarray<nb::device::cpu>;
using Pair = std::pair<int, int>;
using Conv = gradref_conv2d_shape;
using Pool = gradref_pool2d_shape;

namespace {

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

/* The sizes of a convolution, checked against all three arrays. */
template <typename X, typename W, typename Y>
Conv conv_shape(const char *op, const X &x, const W &weight, const Y &y, const char *y_name, Pair stride, Pair padding,
                Pair dilation, int64_t groups) {
    Conv s{};
    s.n = int64_t(x.shape(0)), s.c = int64_t(x.shape(1)), s.h = int64_t(x.shape(2)), s.w = int64_t(x.shape(3));
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
    check_shape(y, {s.n, s.o, s.oh, s.ow}, op, y_name);
    return s;
}

void conv2d(Out y, In x, In weight, std::optional<In> bias, Pair stride, Pair padding, Pair dilation, int64_t groups,
            bool reference) {
    const char *op = "conv2d";
    float *py = data<float>(y, 4, op, "y");
    const float *px = data<const float>(x, 4, op, "x"), *pw = data<const float>(weight, 4, op, "weight");
    const float *pb = bias ? data<const float>(*bias, 1, op, "bias") : nullptr;
    const Conv s = conv_shape(op, x, weight, y, "y", stride, padding, dilation, groups);
    if (bias)
        check_shape(*bias, {s.o}, op, "bias");
    nb::gil_scoped_release unlocked;
    if (reference)
        return gradref_conv2d_reference(py, px, pw, pb, &s);
    Scratch scratch(gradref_conv2d_workspace(&s));
    gradref_conv2d(py, px, pw, pb, &s, scratch.data);
}

void conv2d_backward_input(Out dx, In grad, In weight, Pair stride, Pair padding, Pair dilation, int64_t groups,
                           bool reference) {
    const char *op = "conv2d_backward_input";
    float *pdx = data<float>(dx, 4, op, "dx");
    const float *pg = data<const float>(grad, 4, op, "grad"), *pw = data<const float>(weight, 4, op, "weight");
    const Conv s = conv_shape(op, dx, weight, grad, "grad", stride, padding, dilation, groups);
    nb::gil_scoped_release unlocked;
    if (reference)
        return gradref_conv2d_backward_input_reference(pdx, pg, pw, &s);
    Scratch scratch(gradref_conv2d_backward_input_workspace(&s));
    gradref_conv2d_backward_input(pdx, pg, pw, &s, scratch.data);
}

void conv2d_backward_weight(Out dw, In grad, In x, Pair stride, Pair padding, Pair dilation, int64_t groups,
                            bool reference) {
    const char *op = "conv2d_backward_weight";
    float *pdw = data<float>(dw, 4, op, "dw");
    const float *pg = data<const float>(grad, 4, op, "grad"), *px = data<const float>(x, 4, op, "x");
    const Conv s = conv_shape(op, x, dw, grad, "grad", stride, padding, dilation, groups);
    nb::gil_scoped_release unlocked;
    if (reference)
        return gradref_conv2d_backward_weight_reference(pdw, pg, px, &s);
    Scratch scratch(gradref_conv2d_backward_weight_workspace(&s));
    gradref_conv2d_backward_weight(pdw, pg, px, &s, scratch.data);
}

/* Does each of `out` windows along one axis hold an entry of the input? */
bool windows_filled(int64_t out, int64_t length, int64_t kernel, int64_t stride, int64_t pad, int64_t dilation) {
    for (int64_t i = 0; i < out; i++) {
        const int64_t start = i * stride - pad, skip = start < 0 ? (-start + dilation - 1) / dilation : 0;
        if (skip >= kernel || start + skip * dilation >= length)
            return false;
    }
    return true;
}

template <typename X, typename Y>
Pool pool_shape(const char *op, const X &x, const Y &y, const char *y_name, Pair kernel, Pair stride, Pair padding,
                Pair dilation) {
    Pool s{};
    s.planes = int64_t(x.shape(0) * x.shape(1)), s.h = int64_t(x.shape(2)), s.w = int64_t(x.shape(3));
    s.oh = int64_t(y.shape(2)), s.ow = int64_t(y.shape(3));
    std::tie(s.kh, s.kw) = kernel;
    std::tie(s.stride_h, s.stride_w) = stride;
    std::tie(s.pad_h, s.pad_w) = padding;
    std::tie(s.dilation_h, s.dilation_w) = dilation;
    check(s.kh > 0 && s.kw > 0, op, "kernel must be at least 1");
    check(s.stride_h > 0 && s.stride_w > 0, op, "stride must be at least 1");
    check(s.pad_h >= 0 && s.pad_w >= 0, op, "padding must not be negative");
    check(s.dilation_h > 0 && s.dilation_w > 0, op, "dilation must be at least 1");
    check_shape(y, {int64_t(x.shape(0)), int64_t(x.shape(1)), s.oh, s.ow}, op, y_name);
    check(s.h <= std::numeric_limits<int32_t>::max() / (s.w ? s.w : 1), op, "a plane is too large for int32 indices");
    check(windows_filled(s.oh, s.h, s.kh, s.stride_h, s.pad_h, s.dilation_h) &&
              windows_filled(s.ow, s.w, s.kw, s.stride_w, s.pad_w, s.dilation_w),
          op, "a window lies wholly outside the input");
    return s;
}

void max_pool2d(Out y, Out indices, In x, Pair kernel, Pair stride, Pair padding, Pair dilation, bool reference) {
    const char *op = "max_pool2d";
    float *py = data<float>(y, 4, op, "y");
    int32_t *pi = data<int32_t>(indices, 4, op, "indices");
    const float *px = data<const float>(x, 4, op, "x");
    const Pool s = pool_shape(op, x, y, "y", kernel, stride, padding, dilation);
    check_shape(indices, {int64_t(y.shape(0)), int64_t(y.shape(1)), s.oh, s.ow}, op, "indices");
    nb::gil_scoped_release unlocked;
    (reference ? gradref_max_pool2d_reference : gradref_max_pool2d)(py, pi, px, &s);
}

void max_pool2d_backward(Out dx, In grad, In indices, Pair kernel, Pair stride, Pair padding, Pair dilation,
                         bool reference) {
    const char *op = "max_pool2d_backward";
    float *pdx = data<float>(dx, 4, op, "dx");
    const float *pg = data<const float>(grad, 4, op, "grad");
    const int32_t *pi = data<const int32_t>(indices, 4, op, "indices");
    const Pool s = pool_shape(op, dx, grad, "grad", kernel, stride, padding, dilation);
    check_shape(indices, {int64_t(grad.shape(0)), int64_t(grad.shape(1)), s.oh, s.ow}, op, "indices");
    int wrong;
    {
        nb::gil_scoped_release unlocked;
        wrong = (reference ? gradref_max_pool2d_backward_reference : gradref_max_pool2d_backward)(pdx, pg, pi, &s);
    }
    check(!wrong, op, "an index lies outside its plane");
}

void avg_pool2d(Out y, In x, Pair kernel, Pair stride, Pair padding, bool count_include_pad, bool reference) {
    const char *op = "avg_pool2d";
    float *py = data<float>(y, 4, op, "y");
    const float *px = data<const float>(x, 4, op, "x");
    const Pool s = pool_shape(op, x, y, "y", kernel, stride, padding, Pair(1, 1));
    nb::gil_scoped_release unlocked;
    (reference ? gradref_avg_pool2d_reference : gradref_avg_pool2d)(py, px, &s, count_include_pad);
}

void avg_pool2d_backward(Out dx, In grad, Pair kernel, Pair stride, Pair padding, bool count_include_pad,
                         bool reference) {
    const char *op = "avg_pool2d_backward";
    float *pdx = data<float>(dx, 4, op, "dx");
    const float *pg = data<const float>(grad, 4, op, "grad");
    const Pool s = pool_shape(op, dx, grad, "grad", kernel, stride, padding, Pair(1, 1));
    nb::gil_scoped_release unlocked;
    (reference ? gradref_avg_pool2d_backward_reference : gradref_avg_pool2d_backward)(pdx, pg, &s, count_include_pad);
}

/* What the loader's choice among the clones comes to on this CPU. */
const char *instruction_set() {
#if defined(GRADREF_FORCE_ARCH)
    return GRADREF_NAME(GRADREF_FORCE_ARCH);
#elif defined(GRADREF_HAVE_CLONES)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
        return "AVX-512";
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return "AVX2";
#endif
    return "baseline";
}

} // namespace

NB_MODULE(_kernels, m) {
    m.doc() = "The sequential C kernels of gradref. Outputs come first and are overwritten; see csrc/gradref.h.";
    m.def("instruction_set", &instruction_set, "Name of the instruction set that the kernels use here.");
    m.def("conv2d", &conv2d, "y"_a.noconvert(), "x"_a.noconvert(), "weight"_a.noconvert(), "bias"_a.none().noconvert(),
          "stride"_a, "padding"_a, "dilation"_a, "groups"_a, "reference"_a);
    m.def("conv2d_backward_input", &conv2d_backward_input, "dx"_a.noconvert(), "grad"_a.noconvert(),
          "weight"_a.noconvert(), "stride"_a, "padding"_a, "dilation"_a, "groups"_a, "reference"_a);
    m.def("conv2d_backward_weight", &conv2d_backward_weight, "dw"_a.noconvert(), "grad"_a.noconvert(),
          "x"_a.noconvert(), "stride"_a, "padding"_a, "dilation"_a, "groups"_a, "reference"_a);
    m.def("max_pool2d", &max_pool2d, "y"_a.noconvert(), "indices"_a.noconvert(), "x"_a.noconvert(), "kernel"_a,
          "stride"_a, "padding"_a, "dilation"_a, "reference"_a);
    m.def("max_pool2d_backward", &max_pool2d_backward, "dx"_a.noconvert(), "grad"_a.noconvert(),
          "indices"_a.noconvert(), "kernel"_a, "stride"_a, "padding"_a, "dilation"_a, "reference"_a);
    m.def("avg_pool2d", &avg_pool2d, "y"_a.noconvert(), "x"_a.noconvert(), "kernel"_a, "stride"_a, "padding"_a,
          "count_include_pad"_a, "reference"_a);
    m.def("avg_pool2d_backward", &avg_pool2d_backward, "dx"_a.noconvert(), "grad"_a.noconvert(), "kernel"_a, "stride"_a,
          "padding"_a, "count_include_pad"_a, "reference"_a);
}
