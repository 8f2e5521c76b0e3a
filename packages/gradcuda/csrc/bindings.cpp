// The module _ext: exceptions, then one call for each bind_*.cpp. Importing it makes no CUDA context.
#include "bind.h"

#include <string>

namespace gradcuda {

namespace {

// Refused becomes the class of gradcore.errors that it names.
void translate_refused(const std::exception_ptr &pointer, void *) {
    try {
        std::rethrow_exception(pointer);
    } catch (const Refused &error) {
        PyObject *module = PyImport_ImportModule("gradcore.errors");
        PyObject *kind = module == nullptr ? nullptr : PyObject_GetAttrString(module, error.kind);
        if (kind != nullptr)
            PyErr_SetString(kind, error.what());
        Py_XDECREF(kind);
        Py_XDECREF(module);
    }
}

} // namespace

} // namespace gradcuda

NB_MODULE(_ext, m) {
    using namespace gradcuda;
    m.doc() = "CUDA kernels of gradcuda; gradcuda.backend puts them together";
    auto cuda_error = nb::exception<CudaError>(m, "CudaError", PyExc_RuntimeError);
    nb::exception<OutOfMemory>(m, "OutOfMemoryError", cuda_error);
    nb::register_exception_translator(translate_refused);
    m.attr("ARCHITECTURES") = GRADCUDA_ARCHITECTURES; // as CMake had them: "75-real;80-real;90"
    m.attr("CUDA_VERSION") = CUDART_VERSION;          // 13000 for 13.0
    bind_context(m);
    bind_array(m);
    bind_elementwise(m);
    bind_reduce(m);
    bind_shape(m);
    bind_indexing(m);
    bind_matmul(m);
    bind_graph(m);
    bind_conv2d(m);
    bind_pool2d(m);
    bind_softmax(m);
    bind_optim(m);
    bind_norm(m);
    bind_planted(m);
}
