/* bindings_dense.cpp: linear layers, ReLU, channel sums, optimizer steps and the classifier's loss as Python functions.
 *
 * Rules as in bindings.cpp. Where a kernel sees its arrays as flat (ReLU, the optimizers), any rank will do, but all
 * must have the same shape.
 */
#include <nanobind/stl/optional.h>

#include <optional>

#include "binding_shapes.h"

using namespace nb::literals;

namespace {

struct LinearSizes {
    int64_t n, in, out;
};

template <typename X, typename W, typename Y>
LinearSizes linear_sizes(const char *op, const X &x, const W &weight, const Y &y, const char *y_name) {
    const LinearSizes s{int64_t(x.shape(0)), int64_t(x.shape(1)), int64_t(weight.shape(0))};
    check_shape(weight, {s.out, s.in}, op, "weight");
    check_shape(y, {s.n, s.out}, op, y_name);
    return s;
}

void linear(Out y, In x, In weight, std::optional<In> bias, bool relu, bool reference) {
    const char *op = relu ? "linear_relu" : "linear";
    float *py = data<float>(y, 2, op, "y");
    const float *px = data<const float>(x, 2, op, "x"), *pw = data<const float>(weight, 2, op, "weight");
    const float *pb = bias ? data<const float>(*bias, 1, op, "bias") : nullptr;
    const LinearSizes s = linear_sizes(op, x, weight, y, "y");
    if (bias)
        check_shape(*bias, {s.out}, op, "bias");
    nb::gil_scoped_release unlocked;
    if (reference)
        return gradref_linear_reference(py, px, pw, pb, s.n, s.in, s.out, relu);
    Scratch scratch(gradref_linear_workspace());
    gradref_linear(py, px, pw, pb, s.n, s.in, s.out, relu, scratch.data);
}

void linear_backward_input(Out dx, In grad, In weight, bool reference) {
    const char *op = "linear_backward_input";
    float *pdx = data<float>(dx, 2, op, "dx");
    const float *pg = data<const float>(grad, 2, op, "grad"), *pw = data<const float>(weight, 2, op, "weight");
    const LinearSizes s = linear_sizes(op, dx, weight, grad, "grad");
    nb::gil_scoped_release unlocked;
    if (reference)
        return gradref_linear_backward_input_reference(pdx, pg, pw, s.n, s.in, s.out);
    Scratch scratch(gradref_linear_workspace());
    gradref_linear_backward_input(pdx, pg, pw, s.n, s.in, s.out, scratch.data);
}

void linear_backward_weight(Out dw, In grad, In x, bool reference) {
    const char *op = "linear_backward_weight";
    float *pdw = data<float>(dw, 2, op, "dw");
    const float *pg = data<const float>(grad, 2, op, "grad"), *px = data<const float>(x, 2, op, "x");
    const LinearSizes s = linear_sizes(op, x, dw, grad, "grad");
    nb::gil_scoped_release unlocked;
    if (reference)
        return gradref_linear_backward_weight_reference(pdw, pg, px, s.n, s.in, s.out);
    Scratch scratch(gradref_linear_workspace());
    gradref_linear_backward_weight(pdw, pg, px, s.n, s.in, s.out, scratch.data);
}

template <typename A, typename B> void check_same(const A &a, const B &b, const char *op, const char *name) {
    bool same = a.ndim() == b.ndim();
    for (size_t i = 0; same && i < a.ndim(); i++)
        same = a.shape(i) == b.shape(i);
    if (!same)
        throw nb::value_error(
            (text(op, name) + " must have shape " + shape_name(a) + ", got " + shape_name(b)).c_str());
}

void relu(Out y, In x) {
    const char *op = "relu";
    float *py = data<float>(y, y.ndim(), op, "y");
    const float *px = data<const float>(x, x.ndim(), op, "x");
    check_same(x, y, op, "y");
    nb::gil_scoped_release unlocked;
    gradref_relu(py, px, int64_t(x.size()));
}

void relu_backward(Out dx, In grad, In y) {
    const char *op = "relu_backward";
    float *pdx = data<float>(dx, dx.ndim(), op, "dx");
    const float *pg = data<const float>(grad, grad.ndim(), op, "grad"), *py = data<const float>(y, y.ndim(), op, "y");
    check_same(y, dx, op, "dx");
    check_same(y, grad, op, "grad");
    nb::gil_scoped_release unlocked;
    gradref_relu_backward(pdx, pg, py, int64_t(y.size()));
}

void channel_sum(Out sums, In x) {
    const char *op = "channel_sum";
    float *ps = data<float>(sums, 1, op, "sums");
    const float *px = data<const float>(x, 4, op, "x");
    const int64_t c = int64_t(x.shape(1));
    check_shape(sums, {c}, op, "sums");
    nb::gil_scoped_release unlocked;
    gradref_channel_sum(ps, px, int64_t(x.shape(0)), c, int64_t(x.shape(2) * x.shape(3)));
}

void sgd(Out p, In grad, std::optional<Out> velocity, float rate, float momentum, float kept, float decay,
         bool nesterov) {
    const char *op = "sgd_";
    float *pp = data<float>(p, p.ndim(), op, "parameter"), *pv = nullptr;
    const float *pg = data<const float>(grad, grad.ndim(), op, "grad");
    check_same(p, grad, op, "grad");
    if (velocity) {
        pv = data<float>(*velocity, velocity->ndim(), op, "velocity");
        check_same(p, *velocity, op, "velocity");
    }
    nb::gil_scoped_release unlocked;
    gradref_sgd(pp, pg, pv, int64_t(p.size()), rate, momentum, kept, decay, nesterov);
}

void adam(Out p, In grad, Out first, Out second, float beta1, float rest1, float beta2, float rest2, float size,
          float root, float eps, float kept, float decay) {
    const char *op = "adam_";
    float *pp = data<float>(p, p.ndim(), op, "parameter");
    const float *pg = data<const float>(grad, grad.ndim(), op, "grad");
    float *pm = data<float>(first, first.ndim(), op, "first"), *pv = data<float>(second, second.ndim(), op, "second");
    check_same(p, grad, op, "grad");
    check_same(p, first, op, "first");
    check_same(p, second, op, "second");
    const gradref_adam_step s{beta1, rest1, beta2, rest2, size, root, eps, kept, decay};
    nb::gil_scoped_release unlocked;
    gradref_adam(pp, pg, pm, pv, int64_t(p.size()), &s);
}

/* Sizes of logits (or what is like them) and labels; the loss is one number, or one a row. */
template <typename X, typename L>
void check_loss(const char *op, const X &x, const L &labels, int reduction, const char *name) {
    check(x.shape(1) > 0, op, "there must be at least one class");
    check(reduction >= GRADREF_NONE && reduction <= GRADREF_MEAN, op, "unknown reduction");
    check_shape(labels, {int64_t(x.shape(0))}, op, name);
}

bool cross_entropy(Out loss, Out log_probs, In logits, In labels, int64_t ignore, int reduction) {
    const char *op = "softmax_cross_entropy";
    const size_t axes = reduction == GRADREF_NONE;
    float *pl = data<float>(loss, axes, op, "loss"), *pp = data<float>(log_probs, 2, op, "log_probs");
    const float *px = data<const float>(logits, 2, op, "logits");
    const int64_t *pi = data<const int64_t>(labels, 1, op, "labels");
    check_loss(op, logits, labels, reduction, "labels");
    check_same(logits, log_probs, op, "log_probs");
    if (axes)
        check_same(labels, loss, op, "loss");
    nb::gil_scoped_release unlocked;
    return !gradref_softmax_cross_entropy(pl, pp, px, pi, int64_t(logits.shape(0)), int64_t(logits.shape(1)), ignore,
                                          reduction);
}

void cross_entropy_backward(Out dx, In grad, In log_probs, In labels, int64_t ignore, int reduction) {
    const char *op = "softmax_cross_entropy_backward";
    const size_t axes = reduction == GRADREF_NONE;
    float *pdx = data<float>(dx, 2, op, "dx");
    const float *pg = data<const float>(grad, axes, op, "grad");
    const float *pp = data<const float>(log_probs, 2, op, "log_probs");
    const int64_t *pi = data<const int64_t>(labels, 1, op, "labels");
    check_loss(op, log_probs, labels, reduction, "labels");
    check_same(log_probs, dx, op, "dx");
    if (axes)
        check_same(labels, grad, op, "grad");
    nb::gil_scoped_release unlocked;
    gradref_softmax_cross_entropy_backward(pdx, pg, pp, pi, int64_t(log_probs.shape(0)), int64_t(log_probs.shape(1)),
                                           ignore, reduction);
}

} // namespace

void bind_dense(nb::module_ &m) {
    m.def("linear", &linear, "y"_a.noconvert(), "x"_a.noconvert(), "weight"_a.noconvert(), "bias"_a.none().noconvert(),
          "relu"_a, "reference"_a);
    m.def("linear_backward_input", &linear_backward_input, "dx"_a.noconvert(), "grad"_a.noconvert(),
          "weight"_a.noconvert(), "reference"_a);
    m.def("linear_backward_weight", &linear_backward_weight, "dw"_a.noconvert(), "grad"_a.noconvert(),
          "x"_a.noconvert(), "reference"_a);
    m.def("relu", &relu, "y"_a.noconvert(), "x"_a.noconvert());
    m.def("relu_backward", &relu_backward, "dx"_a.noconvert(), "grad"_a.noconvert(), "y"_a.noconvert());
    m.def("channel_sum", &channel_sum, "sums"_a.noconvert(), "x"_a.noconvert());
    m.def("sgd", &sgd, "parameter"_a.noconvert(), "grad"_a.noconvert(), "velocity"_a.none().noconvert(), "rate"_a,
          "momentum"_a, "kept"_a, "decay"_a, "nesterov"_a);
    m.def("adam", &adam, "parameter"_a.noconvert(), "grad"_a.noconvert(), "first"_a.noconvert(), "second"_a.noconvert(),
          "beta1"_a, "rest1"_a, "beta2"_a, "rest2"_a, "size"_a, "root"_a, "eps"_a, "kept"_a, "decay"_a);
    m.def("softmax_cross_entropy", &cross_entropy, "loss"_a.noconvert(), "log_probs"_a.noconvert(),
          "logits"_a.noconvert(), "labels"_a.noconvert(), "ignore_index"_a, "reduction"_a,
          "Returns False, having written nothing, for a label that is no class.");
    m.def("softmax_cross_entropy_backward", &cross_entropy_backward, "dx"_a.noconvert(), "grad"_a.noconvert(),
          "log_probs"_a.noconvert(), "labels"_a.noconvert(), "ignore_index"_a, "reduction"_a);
}
