// Context in Python: made by gradcuda.backend, never by hand. What needs no array hangs here.
#include "bind.h"

#include "blas.h"
#include "scalar.h"
#include "shape.h"

namespace gradcuda {

namespace {

std::shared_ptr<Context> create_context(int device, bool tf32, const std::string &conv,
                                        const std::vector<std::string> &cublas_paths,
                                        const std::vector<std::string> &cudnn_paths) {
    Options options;
    options.device = device;
    options.tf32 = tf32;
    options.conv = conv;
    options.cublas_paths = cublas_paths;
    options.cudnn_paths = cudnn_paths;
    return Context::create(options);
}

DeviceArray make_empty(Context &context, const Shape &shape, DType dtype) {
    Scope scope("empty", context);
    return empty(context, shape, dtype);
}

DeviceArray full(Context &context, const Shape &shape, nb::handle value, DType dtype) {
    Scope scope("full", context);
    const uint64_t bits = scalar_bits(dtype, scalar_operand("full", value, dtype));
    DeviceArray out = empty(context, shape, dtype);
    if (out.count() > 0)
        fill_launch(item_size(dtype), out.data(), bits, out.count(), scope.stream());
    return out;
}

nb::dict memory_statistics(const Context &context) {
    const MemoryStatistics s = context.common_pool()->statistics();
    nb::dict out;
    out["in_use"] = s.in_use;
    out["peak"] = s.peak;
    out["reserved"] = s.reserved;
    out["allocations"] = s.allocations;
    out["from_driver"] = s.from_driver;
    return out;
}

} // namespace

void bind_context(nb::module_ &m) {
    nb::class_<Context>(m, "Context", "One device, one stream and the memory behind them.")
        .def_prop_ro("device", &Context::device)
        .def_prop_ro("device_name", &Context::device_name)
        .def_prop_ro("capability", &Context::capability, "90 for 9.0")
        .def_prop_ro("multiprocessors", &Context::multiprocessors)
        .def_prop_ro(
            "stream", [](const Context &c) { return reinterpret_cast<uintptr_t>(c.stream()); },
            "The cudaStream_t on which all work is done")
        .def_prop_ro("recording", &Context::recording, "Whether a step is being recorded")
        .def("empty", &make_empty, "shape"_a, "dtype"_a)
        .def("full", &full, "shape"_a, "value"_a, "dtype"_a)
        .def(
            "synchronize", [](Context &c) { c.synchronize("synchronize"); }, nb::call_guard<nb::gil_scoped_release>())
        .def(
            "cublas_version", [](Context &c) { return c.blas().version(); }, "Loads cuBLAS if it is not yet")
        .def("memory_statistics", &memory_statistics)
        .def("reset_peak", [](Context &c) { c.common_pool()->reset_peak(); })
        .def(
            "trim",
            [](Context &c) {
                c.enter_host("trim");
                return c.common_pool()->trim();
            },
            "Give cached memory back to the driver; returns bytes");
    m.def("create_context", &create_context, "device"_a, "tf32"_a, "conv"_a, "cublas_paths"_a, "cudnn_paths"_a);
}

} // namespace gradcuda
