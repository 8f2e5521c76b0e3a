// DeviceArray in Python: shape, dtype, DLPack; and the way to NumPy and back.
//
// DLPack carries a pointer only, so order is kept by events: a consumer's stream waits for ours when it takes an
// array; a producer is told our stream and makes it wait for its own work.
#include "bind.h"

#include "shape.h"

#include <cuda_runtime.h>
#include <nanobind/ndarray.h>

namespace gradcuda {

PyObject *dtype_objects[6];

namespace {

PyObject *numpy_dtype, *numpy_empty; // NumPy's functions dtype and empty

nb::dlpack::dtype dlpack_dtype(DType dtype) {
    switch (dtype) {
    case DType::float32:
        return nb::dtype<float>();
    case DType::float64:
        return nb::dtype<double>();
    case DType::int32:
        return nb::dtype<int32_t>();
    case DType::int64:
        return nb::dtype<int64_t>();
    case DType::uint8:
        return nb::dtype<uint8_t>();
    default:
        return nb::dtype<bool>();
    }
}

DType from_dlpack_dtype(const char *operation, nb::dlpack::dtype given) {
    for (int i = 0; i < 6; ++i)
        if (dlpack_dtype(static_cast<DType>(i)) == given)
            return static_cast<DType>(i);
    throw Refused("DTypeError", std::string(operation) + ": element type of DLPack code " + std::to_string(given.code) +
                                    " with " + std::to_string(given.bits) + " bits is not supported");
}

template <typename Array> Shape shape_of(const Array &array) {
    Shape shape;
    for (size_t i = 0; i < array.ndim(); ++i)
        shape.push(static_cast<int64_t>(array.shape(i)));
    return shape;
}

void copy_size(const Shape &shape, size_t (&sizes)[MAX_DIMS]) {
    for (int i = 0; i < shape.ndim; ++i)
        sizes[i] = static_cast<size_t>(shape[i]);
}

// The host's values in a new array. host: C order. When this returns, the caller may overwrite them.
DeviceArray upload(Context &context, const nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu> &host) {
    context.enter_host("asarray");
    Scope scope("asarray", context);
    DeviceArray out = empty(context, shape_of(host), from_dlpack_dtype("asarray", host.dtype()));
    if (out.count() > 0) {
        nb::gil_scoped_release unlocked;
        CUDA_CHECK(cudaMemcpyAsync(out.data(), host.data(), out.bytes(), cudaMemcpyHostToDevice, context.stream()));
        CUDA_CHECK(cudaStreamSynchronize(context.stream())); // a pageable copy may still be reading
    }
    return out;
}

// The values in a new NumPy array; waits for them, and raises what a kernel has reported.
nb::object to_numpy(const DeviceArray &x) {
    Context &context = x.context();
    context.enter_host("to_numpy");
    Scope scope("to_numpy", x);
    nb::object out = nb::borrow(numpy_empty)(nb::cast(x.shape), nb::cast(x.dtype)); // with NumPy's own dtype object
    auto host = nb::cast<nb::ndarray<nb::c_contig, nb::device::cpu>>(out);
    nb::gil_scoped_release unlocked;
    if (x.count() > 0)
        CUDA_CHECK(cudaMemcpyAsync(host.data(), x.data(), x.bytes(), cudaMemcpyDeviceToHost, context.stream()));
    context.synchronize("to_numpy");
    return out;
}

// Let `stream` (DLPack's number for one; -1: no wish) wait for all our work so far.
void order_after_us(const DeviceArray &x, long long stream) {
    if (stream == -1)
        return;
    const auto consumer = reinterpret_cast<cudaStream_t>(static_cast<uintptr_t>(stream == 0 ? 1 : stream));
    cudaEvent_t event = nullptr;
    CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    cudaError_t status = cudaEventRecord(event, x.context().stream());
    if (status == cudaSuccess)
        status = cudaStreamWaitEvent(consumer, event, 0);
    cudaEventDestroy(event);
    check(status, "__dlpack__");
}

nb::object to_dlpack(const DeviceArray &x, const nb::kwargs &options) {
    x.context().enter_host("__dlpack__");
    Scope scope("__dlpack__", x);
    nb::dict rest;
    long long stream = 1; // None: the legacy default stream
    for (auto [key, value] : options) {
        if (nb::cast<std::string>(key) != "stream")
            rest[key] = value;
        else if (!value.is_none())
            stream = nb::cast<long long>(value);
    }
    order_after_us(x, stream);
    auto *keep = new std::shared_ptr<Buffer>(x.buffer()); // the consumer holds the memory
    (*keep)->set_exported();
    nb::capsule owner(keep, [](void *p) noexcept { delete static_cast<std::shared_ptr<Buffer> *>(p); });
    size_t sizes[MAX_DIMS];
    copy_size(x.shape, sizes);
    nb::ndarray<nb::array_api> exported(x.data(), x.shape.ndim, sizes, owner, nullptr, dlpack_dtype(x.dtype),
                                        nb::device::cuda::value, x.context().device());
    return nb::cast(exported).attr("__dlpack__")(**rest);
}

// capsule: of an array on our device, whose producer was given our stream. Without a copy if it is contiguous.
DeviceArray import_dlpack(Context &context, nb::object capsule) {
    context.enter_host("from_dlpack");
    Scope scope("from_dlpack", context);
    auto *foreign = new nb::ndarray<nb::ro>(nb::cast<nb::ndarray<nb::ro>>(capsule));
    std::shared_ptr<void> owner(foreign, [](void *p) { delete static_cast<nb::ndarray<nb::ro> *>(p); });
    if (foreign->device_type() != nb::device::cuda::value || foreign->device_id() != context.device())
        throw Refused("ArgumentError",
                      "from_dlpack: the array is not on CUDA device " + std::to_string(context.device()));
    const Shape shape = shape_of(*foreign);
    const DType dtype = from_dlpack_dtype("from_dlpack", foreign->dtype());
    void *data = const_cast<void *>(static_cast<const void *>(foreign->data()));
    const Strides contiguous = contiguous_strides(shape);
    Strides strides;
    bool is_contiguous = true;
    for (int i = 0; i < shape.ndim; ++i) {
        strides[i] = foreign->stride(i);
        is_contiguous = is_contiguous && (shape[i] == 1 || strides[i] == contiguous[i]);
    }
    DeviceArray array(std::make_shared<Buffer>(context.shared_from_this(), data, owner), shape, dtype);
    if (is_contiguous || array.count() == 0)
        return array;
    DeviceArray out = empty(context, shape, dtype);
    gather_launch(item_size(dtype), out.data(), data, make_layout(shape, {strides}), 0, out.count(), scope.stream());
    return out;
}

} // namespace

bool find_dtype(PyObject *object, DType &out) {
    for (int i = 0; i < 6; ++i)
        if (object == dtype_objects[i]) {
            out = static_cast<DType>(i);
            return true;
        }
    PyObject *dtype = PyObject_CallFunctionObjArgs(numpy_dtype, object, nullptr);
    bool found = false;
    for (int i = 0; dtype != nullptr && !found && i < 6; ++i)
        if (PyObject_RichCompareBool(dtype, dtype_objects[i], Py_EQ) == 1) {
            out = static_cast<DType>(i);
            found = true;
        }
    Py_XDECREF(dtype);
    PyErr_Clear();
    return found;
}

void refuse_dtype(const char *operation, DType dtype) {
    throw Refused("DTypeError", std::string(operation) + ": the CUDA backend has no kernel for " + dtype_name(dtype));
}

void bind_array(nb::module_ &m) {
    nb::object numpy = nb::module_::import_("numpy"), make = numpy.attr("dtype"), new_array = numpy.attr("empty");
    numpy_empty = new_array.release().ptr(); // these are never given back: NumPy lives as long as the process
    numpy_dtype = nb::object(make).release().ptr();
    for (int i = 0; i < 6; ++i)
        dtype_objects[i] = make(dtype_name(static_cast<DType>(i))).release().ptr();

    nb::class_<DeviceArray>(m, "DeviceArray", "Numbers on the GPU; always contiguous. Made by a backend.")
        .def_prop_ro("shape", [](const DeviceArray &x) { return x.shape; })
        .def_prop_ro(
            "dtype", [](const DeviceArray &x) { return x.dtype; }, nb::sig("def dtype(self) -> numpy.dtype"))
        .def_prop_ro("nbytes", &DeviceArray::bytes)
        .def_prop_ro(
            "pointer", [](const DeviceArray &x) { return reinterpret_cast<uintptr_t>(x.data()); },
            "Address in device memory")
        .def("__len__",
             [](const DeviceArray &x) {
                 if (x.shape.ndim == 0)
                     throw nb::type_error("len() of an array without axes");
                 return x.shape[0];
             })
        .def("__repr__",
             [](const DeviceArray &x) {
                 return "<DeviceArray " + to_string(x.shape) + " " + dtype_name(x.dtype) +
                        " on cuda:" + std::to_string(x.context().device()) + ">";
             })
        .def("__dlpack__", &to_dlpack, "options"_a)
        .def("__dlpack_device__", [](const DeviceArray &x) {
            return std::make_pair(static_cast<int>(nb::device::cuda::value), x.context().device());
        });
    m.def("upload", &upload, "context"_a, "host"_a.noconvert());
    m.def("to_numpy", &to_numpy, "x"_a, nb::sig("def to_numpy(x: DeviceArray) -> numpy.ndarray"));
    m.def("import_dlpack", &import_dlpack, "context"_a, "capsule"_a);
    m.def(
        "same_context", [](const DeviceArray &x, const Context &context) { return &x.context() == &context; }, "x"_a,
        "context"_a);
}

} // namespace gradcuda
