// matmul: any leading axes, which broadcast; both transpose flags. cuBLAS does the products (blas.h).
#include "bind.h"

#include "blas.h"
#include "layout.h"
#include "shape.h"

#include <algorithm>

namespace gradcuda {

namespace {

constexpr int64_t MAX_BATCH = 65535; // of one cuBLAS call

Shape leading(const Shape &shape) {
    Shape out;
    for (int i = 0; i + 2 < shape.ndim; ++i)
        out.push(shape[i]);
    return out;
}

// One strided-batched call for the last axis of the batch, a loop on the host over those before it.
void run_batches(const Scope &scope, DType dtype, Gemm g, const Layout &batch, const char *a, const char *b, char *c) {
    const size_t item = item_size(dtype);
    const int last = batch.ndim - 1;
    int64_t outer = 1;
    for (int i = 0; i < last; ++i)
        outer *= batch.size[i];
    const int64_t a_size = g.m * g.k, b_size = g.k * g.n, c_size = g.m * g.n;
    g.stride_a = batch.stride[0][last] * a_size;
    g.stride_b = batch.stride[1][last] * b_size;
    g.stride_c = c_size;
    for (int64_t o = 0; o < outer; ++o) {
        int64_t a_at = 0, b_at = 0, rest = o;
        for (int i = last - 1; i >= 0; --i) {
            const int64_t here = rest % batch.size[i];
            rest /= batch.size[i];
            a_at += here * batch.stride[0][i];
            b_at += here * batch.stride[1][i];
        }
        for (int64_t first = 0; first < batch.size[last]; first += MAX_BATCH) {
            g.batch = std::min(MAX_BATCH, batch.size[last] - first);
            gemm(scope.context, dtype, g, a + item * (a_at * a_size + first * g.stride_a),
                 b + item * (b_at * b_size + first * g.stride_b), c + item * (o * batch.size[last] + first) * c_size);
        }
    }
}

DeviceArray matmul(const DeviceArray &a, const DeviceArray &b, bool transpose_a, bool transpose_b) {
    Scope scope("matmul", a, b);
    require_float("matmul", a.dtype);
    if (a.dtype != b.dtype)
        throw Refused("DTypeError", std::string("matmul: got ") + dtype_name(a.dtype) + " and " + dtype_name(b.dtype));
    const int a_last = a.shape.ndim - 1, b_last = b.shape.ndim - 1;
    if (a_last < 1 || b_last < 1)
        throw Refused("ShapeError",
                      "matmul: two axes at least, got " + to_string(a.shape) + " and " + to_string(b.shape));
    Gemm g{};
    g.transpose_a = transpose_a;
    g.transpose_b = transpose_b;
    g.lda = a.shape[a_last];
    g.ldb = b.shape[b_last];
    g.m = a.shape[transpose_a ? a_last : a_last - 1];
    g.k = a.shape[transpose_a ? a_last - 1 : a_last];
    g.n = b.shape[transpose_b ? b_last - 1 : b_last];
    g.ldc = g.n;
    g.batch = 1;
    if (g.k != b.shape[transpose_b ? b_last : b_last - 1])
        throw Refused("ShapeError",
                      "matmul: got " + to_string(a.shape) + " and " + to_string(b.shape) + ", inner sizes must agree");
    const Shape a_batch = leading(a.shape), b_batch = leading(b.shape);
    const Shape batch = broadcast_shapes("matmul", {&a_batch, &b_batch});
    Shape shape = batch;
    shape.push(g.m);
    shape.push(g.n);
    DeviceArray out = empty(scope.context, shape, a.dtype);
    if (out.count() == 0)
        return out;
    if (g.k == 0) {
        fill_launch(item_size(a.dtype), out.data(), 0, out.count(), scope.stream());
        return out;
    }
    if (b_batch.count() == 1 && !transpose_a) { // rows of all batch entries lie one after the other
        g.m *= batch.count();
        gemm(scope.context, a.dtype, g, a.data(), b.data(), out.data());
        return out;
    }
    const Layout layout =
        make_layout(batch, {broadcast_strides("matmul", a_batch, batch), broadcast_strides("matmul", b_batch, batch)});
    run_batches(scope, a.dtype, g, layout, a.as<char>(), b.as<char>(), out.as<char>());
    return out;
}

} // namespace

void bind_matmul(nb::module_ &m) { m.def("matmul", &matmul, "a"_a, "b"_a, "transpose_a"_a, "transpose_b"_a); }

} // namespace gradcuda
