/* bindings_fused.cpp: convolution, ReLU and max pool as one step, as Python functions. Rules as in bindings.cpp.
 *
 * Options come in two tuples, as the backend passes them on: (stride, padding, dilation, groups) of the convolution and
 * (kernel, stride, padding, dilation) of the pool; conv_size is the (rows, columns) of the convolution's output.
 */
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <optional>

#include "binding_shapes.h"

using namespace nb::literals;
using ConvOptions = std::tuple<Pair, Pair, Pair, int64_t>;
using PoolOptions = std::tuple<Pair, Pair, Pair, Pair>;

namespace {

template <typename X, typename W>
Conv conv_of(const char *op, const X &x, const W &weight, const ConvOptions &options) {
    const int64_t sizes[4] = {int64_t(x.shape(0)), int64_t(x.shape(1)), int64_t(x.shape(2)), int64_t(x.shape(3))};
    const auto [stride, padding, dilation, groups] = options;
    return conv_sizes(op, sizes, weight, stride, padding, dilation, groups);
}

void forward(Out y, Out indices, In x, In weight, std::optional<In> bias, ConvOptions conv_options,
             PoolOptions pool_options, bool reference) {
    const char *op = "conv2d_relu_max_pool2d";
    float *py = data<float>(y, 4, op, "y");
    int32_t *pi = data<int32_t>(indices, 4, op, "indices");
    const float *px = data<const float>(x, 4, op, "x"), *pw = data<const float>(weight, 4, op, "weight");
    const float *pb = bias ? data<const float>(*bias, 1, op, "bias") : nullptr;
    const Conv s = conv_of(op, x, weight, conv_options);
    if (bias)
        check_shape(*bias, {s.o}, op, "bias");
    const int64_t oh = int64_t(y.shape(2)), ow = int64_t(y.shape(3));
    check_shape(y, {s.n, s.o, oh, ow}, op, "y");
    check_shape(indices, {s.n, s.o, oh, ow}, op, "indices");
    check(s.oh <= std::numeric_limits<int>::max() && s.ow <= std::numeric_limits<int>::max() / s.oh, op,
          "a plane is too large for int32 indices");
    const auto [kernel, stride, padding, dilation] = pool_options;
    const Pool pool = pool_sizes(op, s.n * s.o, Pair(int(s.oh), int(s.ow)), Pair(int(oh), int(ow)), kernel, stride,
                                 padding, dilation);
    nb::gil_scoped_release unlocked;
    if (reference)
        return gradref_conv2d_relu_max_pool2d_reference(py, pi, px, pw, pb, &s, &pool);
    Scratch scratch(gradref_conv2d_relu_max_pool2d_workspace(&s, &pool));
    gradref_conv2d_relu_max_pool2d(py, pi, px, pw, pb, &s, &pool, scratch.data);
}

/* Checks of a backward; returns the entries of a pooled plane. */
int64_t pooled_of(const char *op, const In &grad, const In &indices, const Conv &s, Pair conv_size) {
    const int64_t oh = int64_t(grad.shape(2)), ow = int64_t(grad.shape(3));
    check_shape(grad, {s.n, s.o, oh, ow}, op, "grad");
    check_shape(indices, {s.n, s.o, oh, ow}, op, "indices");
    check(s.oh == conv_size.first && s.ow == conv_size.second, op, "conv_size is not the convolution's output size");
    return oh * ow;
}

void backward_input(Out dx, In grad, In indices, In weight, Pair conv_size, ConvOptions conv_options, bool reference) {
    const char *op = "conv2d_relu_max_pool2d_backward_input";
    float *pdx = data<float>(dx, 4, op, "dx");
    const float *pg = data<const float>(grad, 4, op, "grad"), *pw = data<const float>(weight, 4, op, "weight");
    const int32_t *pi = data<const int32_t>(indices, 4, op, "indices");
    const Conv s = conv_of(op, dx, weight, conv_options);
    const int64_t pooled = pooled_of(op, grad, indices, s, conv_size);
    int wrong;
    {
        nb::gil_scoped_release unlocked;
        if (reference)
            wrong = gradref_conv2d_relu_max_pool2d_backward_input_reference(pdx, pg, pi, pw, &s, pooled);
        else {
            Scratch scratch(gradref_conv2d_relu_max_pool2d_backward_workspace(&s, pooled));
            wrong = gradref_conv2d_relu_max_pool2d_backward_input(pdx, pg, pi, pw, &s, pooled, scratch.data);
        }
    }
    check(!wrong, op, "an index lies outside its plane");
}

void backward_weight(Out dw, In grad, In indices, In x, Pair conv_size, ConvOptions conv_options, bool reference) {
    const char *op = "conv2d_relu_max_pool2d_backward_weight";
    float *pdw = data<float>(dw, 4, op, "dw");
    const float *pg = data<const float>(grad, 4, op, "grad"), *px = data<const float>(x, 4, op, "x");
    const int32_t *pi = data<const int32_t>(indices, 4, op, "indices");
    const Conv s = conv_of(op, x, dw, conv_options);
    const int64_t pooled = pooled_of(op, grad, indices, s, conv_size);
    int wrong;
    {
        nb::gil_scoped_release unlocked;
        if (reference)
            wrong = gradref_conv2d_relu_max_pool2d_backward_weight_reference(pdw, pg, pi, px, &s, pooled);
        else {
            Scratch scratch(gradref_conv2d_relu_max_pool2d_backward_workspace(&s, pooled));
            wrong = gradref_conv2d_relu_max_pool2d_backward_weight(pdw, pg, pi, px, &s, pooled, scratch.data);
        }
    }
    check(!wrong, op, "an index lies outside its plane");
}

void backward_bias(Out db, In grad, In indices) {
    const char *op = "conv2d_relu_max_pool2d_backward_bias";
    float *pdb = data<float>(db, 1, op, "db");
    const float *pg = data<const float>(grad, 4, op, "grad");
    const int32_t *pi = data<const int32_t>(indices, 4, op, "indices");
    const int64_t n = int64_t(grad.shape(0)), o = int64_t(grad.shape(1));
    const int64_t oh = int64_t(grad.shape(2)), ow = int64_t(grad.shape(3));
    check_shape(indices, {n, o, oh, ow}, op, "indices");
    check_shape(db, {o}, op, "db");
    nb::gil_scoped_release unlocked;
    gradref_conv2d_relu_max_pool2d_backward_bias(pdb, pg, pi, n, o, oh * ow);
}

} // namespace

void bind_fused(nb::module_ &m) {
    m.def("conv2d_relu_max_pool2d", &forward, "y"_a.noconvert(), "indices"_a.noconvert(), "x"_a.noconvert(),
          "weight"_a.noconvert(), "bias"_a.none().noconvert(), "conv_options"_a, "pool_options"_a, "reference"_a);
    m.def("conv2d_relu_max_pool2d_backward_input", &backward_input, "dx"_a.noconvert(), "grad"_a.noconvert(),
          "indices"_a.noconvert(), "weight"_a.noconvert(), "conv_size"_a, "conv_options"_a, "reference"_a);
    m.def("conv2d_relu_max_pool2d_backward_weight", &backward_weight, "dw"_a.noconvert(), "grad"_a.noconvert(),
          "indices"_a.noconvert(), "x"_a.noconvert(), "conv_size"_a, "conv_options"_a, "reference"_a);
    m.def("conv2d_relu_max_pool2d_backward_bias", &backward_bias, "db"_a.noconvert(), "grad"_a.noconvert(),
          "indices"_a.noconvert());
}
