// Convolution: shapes into Conv2dShape, the choice of an algorithm, scratch, launch. gradcore.ops checked the sizes.
#include "bind.h"

#include "blas.h"
#include "conv2d.h"
#include "conv2d_cudnn.h"

#include <algorithm>

namespace gradcuda {

namespace {

int narrow(int64_t n) {
    if (n > INT32_MAX)
        throw Refused("ShapeError", "conv2d: a size of " + std::to_string(n) + " is too large for the CUDA kernels");
    return static_cast<int>(n);
}

// Everything but the batch is 32-bit; one plane ends at 2^30 entries, a sum over (C/groups, KH, KW) at 2^31.
Conv2dShape make_shape(const Shape &x, const Shape &weight, const Pair &stride, const Pair &padding,
                       const Pair &dilation, int64_t groups) {
    if (x.ndim != 4 || weight.ndim != 4)
        throw Refused("ShapeError", "conv2d: got input " + to_string(x) + " and weight " + to_string(weight) +
                                        ", both must have four axes");
    const auto out = [](int64_t size, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation) {
        const int64_t room = size + 2 * padding - dilation * (kernel - 1) - 1;
        return room < 0 ? 0 : room / stride + 1;
    };
    Conv2dShape s{};
    s.n = x[0];
    s.c = narrow(x[1]), s.h = narrow(x[2]), s.w = narrow(x[3]);
    s.o = narrow(weight[0]), s.kh = narrow(weight[2]), s.kw = narrow(weight[3]);
    s.stride_h = narrow(stride.first), s.stride_w = narrow(stride.second);
    s.pad_h = narrow(padding.first), s.pad_w = narrow(padding.second);
    s.dilation_h = narrow(dilation.first), s.dilation_w = narrow(dilation.second);
    s.groups = narrow(groups);
    s.oh = narrow(out(x[2], weight[2], stride.first, padding.first, dilation.first));
    s.ow = narrow(out(x[3], weight[3], stride.second, padding.second, dilation.second));
    narrow(2 * std::max(s.plane(), s.out_plane()));
    narrow(x[2] + 2 * padding.first + dilation.first * weight[2]);
    narrow(x[3] + 2 * padding.second + dilation.second * weight[3]);
    narrow(std::max(weight[0], weight[1]) * weight[2] * weight[3] + 128);
    return s;
}

// gradcore.ops has checked this for its callers; others must not read out of bounds either.
void check_shape(const char *operation, const char *what, const Shape &got, const Shape &expected) {
    if (got != expected)
        throw Refused("ShapeError", std::string(operation) + ": got " + what + " " + to_string(got) + ", expected " +
                                        to_string(expected));
}

void same_dtype(const char *operation, const DeviceArray &a, const DeviceArray &b) {
    require_float(operation, a.dtype);
    if (a.dtype != b.dtype)
        throw Refused("DTypeError", std::string(operation) + ": got " + dtype_name(a.dtype) + " and " +
                                        dtype_name(b.dtype) + ", both must be one float type");
}

// out from a and b: (x, weight), (grad, weight) or (grad, x), by pass. bias belongs to the forward.
void run(Context &context, Conv2dPass pass, const DeviceArray &out, const DeviceArray &a, const DeviceArray &b,
         const DeviceArray *bias, const Conv2dShape &s) {
    const Conv2dAlgorithm algorithm = choose_conv2d(context.options().conv, s, pass);
    const cudaStream_t stream = context.stream();
    const bool tf32 = context.options().tf32 && context.capability() >= 80;
    dispatch_float("conv2d", out.dtype, [&](auto type) {
        using T = decltype(type);
        T *to = out.as<T>();
        const T *p = a.as<T>(), *q = b.as<T>(), *shift = bias == nullptr ? nullptr : bias->as<T>();
        if (algorithm == Conv2dAlgorithm::cudnn && s.x_size() > 0 && s.y_size() > 0) {
            conv2d_cudnn(context, pass, out.dtype, to, p, q, s);
            if (shift != nullptr)
                conv2d_add_bias(to, shift, s, stream);
        } else if (algorithm == Conv2dAlgorithm::direct) {
            if (pass == Conv2dPass::forward)
                conv2d_direct_forward(to, p, q, shift, s, stream);
            else if (pass == Conv2dPass::backward_input)
                conv2d_direct_backward_input(to, p, q, s, stream);
            else
                conv2d_direct_backward_weight(to, p, q, s, stream);
        } else if (algorithm == Conv2dAlgorithm::unroll) {
            Scratch scratch(context, conv2d_unroll_scratch<T>(s, pass));
            void *space = scratch.as<void>();
            if (pass == Conv2dPass::forward)
                conv2d_unroll_forward(to, p, q, shift, s, context.blas(), space, stream);
            else if (pass == Conv2dPass::backward_input)
                conv2d_unroll_backward_input(to, p, q, s, context.blas(), space, stream);
            else
                conv2d_unroll_backward_weight(to, p, q, s, context.blas(), space, stream);
        } else if (pass == Conv2dPass::forward) {
            conv2d_implicit_gemm_forward(to, p, q, shift, s, tf32, stream);
        } else if (pass == Conv2dPass::backward_input) {
            conv2d_implicit_gemm_backward_input(to, p, q, s, tf32, stream);
        } else {
            Scratch scratch(context, conv2d_implicit_gemm_backward_weight_scratch<T>(s));
            conv2d_implicit_gemm_backward_weight(to, p, q, s, tf32, scratch.as<void>(), stream);
        }
    });
}

DeviceArray conv2d(const DeviceArray &x, const DeviceArray &weight, const std::optional<DeviceArray> &bias,
                   const Pair &stride, const Pair &padding, const Pair &dilation, int64_t groups) {
    Scope scope("conv2d", x, weight, bias ? *bias : x);
    same_dtype("conv2d", x, weight);
    same_dtype("conv2d", x, bias ? *bias : x);
    const Conv2dShape s = make_shape(x.shape, weight.shape, stride, padding, dilation, groups);
    check_shape("conv2d", "input", x.shape, {s.n, weight.shape[1] * groups, s.h, s.w});
    check_shape("conv2d", "bias", bias ? bias->shape : Shape{s.o}, {s.o});
    DeviceArray y = empty(scope.context, {s.n, s.o, s.oh, s.ow}, x.dtype);
    if (y.count() > 0)
        run(scope.context, Conv2dPass::forward, y, x, weight, bias ? &*bias : nullptr, s);
    return y;
}

DeviceArray conv2d_backward_input(const DeviceArray &grad, const DeviceArray &weight, const Shape &x_shape,
                                  const Pair &stride, const Pair &padding, const Pair &dilation, int64_t groups) {
    Scope scope("conv2d_backward_input", grad, weight);
    same_dtype("conv2d_backward_input", grad, weight);
    const Conv2dShape s = make_shape(x_shape, weight.shape, stride, padding, dilation, groups);
    check_shape("conv2d_backward_input", "grad", grad.shape, {s.n, s.o, s.oh, s.ow});
    check_shape("conv2d_backward_input", "input", x_shape, {s.n, weight.shape[1] * groups, s.h, s.w});
    DeviceArray dx = empty(scope.context, x_shape, grad.dtype);
    if (dx.count() > 0)
        run(scope.context, Conv2dPass::backward_input, dx, grad, weight, nullptr, s);
    return dx;
}

DeviceArray conv2d_backward_weight(const DeviceArray &grad, const DeviceArray &x, const Shape &weight_shape,
                                   const Pair &stride, const Pair &padding, const Pair &dilation, int64_t groups) {
    Scope scope("conv2d_backward_weight", grad, x);
    same_dtype("conv2d_backward_weight", grad, x);
    const Conv2dShape s = make_shape(x.shape, weight_shape, stride, padding, dilation, groups);
    check_shape("conv2d_backward_weight", "grad", grad.shape, {s.n, s.o, s.oh, s.ow});
    check_shape("conv2d_backward_weight", "input", x.shape, {s.n, weight_shape[1] * groups, s.h, s.w});
    DeviceArray dw = empty(scope.context, weight_shape, grad.dtype);
    if (dw.count() > 0) // also for an empty batch: zeros
        run(scope.context, Conv2dPass::backward_weight, dw, grad, x, nullptr, s);
    return dw;
}

// y (..., out) = x (..., in) @ weight (out, in)^T + bias (out,): cuBLAS, then one kernel for the bias.
DeviceArray linear(const DeviceArray &x, const DeviceArray &weight, const std::optional<DeviceArray> &bias) {
    Scope scope("linear", x, weight, bias ? *bias : x);
    same_dtype("linear", x, weight);
    same_dtype("linear", x, bias ? *bias : x);
    const int last = x.shape.ndim - 1;
    if (last < 0 || weight.shape.ndim != 2)
        throw Refused("ShapeError", "linear: got x " + to_string(x.shape) + " and weight " + to_string(weight.shape));
    const int64_t inputs = x.shape[last], outputs = weight.shape[0];
    check_shape("linear", "weight", weight.shape, {outputs, inputs});
    check_shape("linear", "bias", bias ? bias->shape : Shape{outputs}, {outputs});
    Shape shape = x.shape;
    shape[last] = outputs;
    const int64_t n = outputs > 0 ? shape.count() / outputs : 0;
    DeviceArray y = empty(scope.context, shape, x.dtype);
    if (y.count() == 0)
        return y;
    if (inputs > 0)
        matmul_into(scope.context, x.dtype, x.data(), weight.data(), y.data(), n, outputs, inputs, false, true);
    else
        CUDA_CHECK(cudaMemsetAsync(y.data(), 0, y.bytes(), scope.stream()));
    if (bias)
        dispatch_float("linear", x.dtype, [&](auto type) {
            using T = decltype(type);
            const int o = narrow(outputs);
            const Conv2dShape s{n, 1, 1, 1, o, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1};
            conv2d_add_bias(y.as<T>(), bias->as<T>(), s, scope.stream());
        });
    return y;
}

} // namespace

void bind_conv2d(nb::module_ &m) {
    m.def("conv2d", &conv2d, "x"_a, "weight"_a, "bias"_a.none(), "stride"_a, "padding"_a, "dilation"_a, "groups"_a);
    m.def("conv2d_backward_input", &conv2d_backward_input, "grad"_a, "weight"_a, "x_shape"_a, "stride"_a, "padding"_a,
          "dilation"_a, "groups"_a);
    m.def("conv2d_backward_weight", &conv2d_backward_weight, "grad"_a, "x"_a, "weight_shape"_a, "stride"_a, "padding"_a,
          "dilation"_a, "groups"_a);
    m.def("cudnn_version", &cudnn_version, "paths"_a, "Loads libcudnn.so.9; CudaError says where it was looked for.");
    m.def("linear", &linear, "x"_a, "weight"_a, "bias"_a.none());
}

} // namespace gradcuda
