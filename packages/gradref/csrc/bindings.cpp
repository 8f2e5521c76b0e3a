/* bindings.cpp: the kernels as Python functions. nanobind and checks only; no arithmetic.
 *
 * Every function takes its output first, allocated by the caller (backend.py), and overwrites it. Arrays must have the
 * right dtype, rank and shape and be C-contiguous; nothing is converted or copied. They are taken untyped and checked
 * here, because nanobind's own message names neither dtype nor layout. The interpreter lock is released while a kernel
 * runs. Errors: TypeError for a dtype, ValueError for the rest, MemoryError.
 * Here the module, convolution and pooling; the rest is in bindings_fused.cpp and bindings_dense.cpp.
 * Helpers: binding_checks.h, binding_shapes.h.
 */
#include <nanobind/stl/optional.h>

#include <optional>

#include "binding_shapes.h"

using namespace nb::literals;

namespace {

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
    bind_fused(m);
    bind_dense(m);
}
