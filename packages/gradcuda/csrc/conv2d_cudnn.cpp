// conv2d_cudnn.cpp: libcudnn.so.9 by dlopen, its entry points declared by hand (cuDNN 9, the calls of version 7 that it
// still has). Nothing is needed at build time. Read first: conv2d_cudnn.h.
#include "conv2d_cudnn.h"

#include <dlfcn.h>
#include <map>
#include <mutex>

namespace gradcuda {

namespace {

constexpr int FLOAT = 0, DOUBLE = 1, NCHW = 0, CROSS_CORRELATION = 1, DEFAULT_MATH = 0, FMA_MATH = 3;
constexpr int ALGORITHM = 1; // implicit GEMM, the deterministic one of its kind, in all three passes

using Pointer = void *; // a handle or a descriptor

struct Library {
    size_t (*version)();
    const char *(*error)(int);
    int (*create)(Pointer *);
    int (*set_stream)(Pointer, cudaStream_t);
    int (*create_tensor)(Pointer *), (*destroy_tensor)(Pointer);
    int (*create_filter)(Pointer *), (*destroy_filter)(Pointer);
    int (*create_convolution)(Pointer *), (*destroy_convolution)(Pointer);
    int (*set_tensor)(Pointer, int format, int type, int, int, int, int);
    int (*set_filter)(Pointer, int type, int format, int, int, int, int);
    int (*set_convolution)(Pointer, int, int, int, int, int, int, int mode, int type);
    int (*set_groups)(Pointer, int), (*set_math)(Pointer, int);
    int (*workspace[3])(Pointer, Pointer, Pointer, Pointer, Pointer, int, size_t *);
    int (*run[3])(Pointer, const void *, Pointer, const void *, Pointer, const void *, Pointer, int, void *, size_t,
                  const void *, Pointer, void *);
};

template <class F> void find(void *library, const char *name, F &function) {
    function = reinterpret_cast<F>(dlsym(library, name));
    if (function == nullptr)
        throw CudaError(std::string("conv2d: this cuDNN has no ") + name);
}

Library open(const std::vector<std::string> &paths) {
    const char *name = "libcudnn.so.9";
    void *from = dlopen(name, RTLD_LAZY | RTLD_NOLOAD); // another library may have brought it
    std::string looked;
    for (size_t i = 0; from == nullptr && i < paths.size(); i++) {
        from = dlopen(paths[i].c_str(), RTLD_LAZY);
        looked += paths[i] + ", ";
    }
    if (from == nullptr)
        from = dlopen(name, RTLD_LAZY);
    if (from == nullptr)
        throw CudaError("conv2d: cuDNN was not found (looked for " + looked + name +
                        "): pip install nvidia-cudnn-cu13, or choose another conv");
    Library l{};
    find(from, "cudnnGetVersion", l.version);
    find(from, "cudnnGetErrorString", l.error);
    find(from, "cudnnCreate", l.create);
    find(from, "cudnnSetStream", l.set_stream);
    find(from, "cudnnCreateTensorDescriptor", l.create_tensor);
    find(from, "cudnnDestroyTensorDescriptor", l.destroy_tensor);
    find(from, "cudnnCreateFilterDescriptor", l.create_filter);
    find(from, "cudnnDestroyFilterDescriptor", l.destroy_filter);
    find(from, "cudnnCreateConvolutionDescriptor", l.create_convolution);
    find(from, "cudnnDestroyConvolutionDescriptor", l.destroy_convolution);
    find(from, "cudnnSetTensor4dDescriptor", l.set_tensor);
    find(from, "cudnnSetFilter4dDescriptor", l.set_filter);
    find(from, "cudnnSetConvolution2dDescriptor", l.set_convolution);
    find(from, "cudnnSetConvolutionGroupCount", l.set_groups);
    find(from, "cudnnSetConvolutionMathType", l.set_math);
    find(from, "cudnnGetConvolutionForwardWorkspaceSize", l.workspace[0]);
    find(from, "cudnnGetConvolutionBackwardDataWorkspaceSize", l.workspace[1]);
    find(from, "cudnnGetConvolutionBackwardFilterWorkspaceSize", l.workspace[2]);
    find(from, "cudnnConvolutionForward", l.run[0]);
    find(from, "cudnnConvolutionBackwardData", l.run[1]);
    find(from, "cudnnConvolutionBackwardFilter", l.run[2]);
    return l;
}

std::mutex mutex;

// Loaded once for the process, and never unloaded. Hold the mutex.
const Library &library(const std::vector<std::string> &paths) {
    static const Library *loaded = nullptr;
    if (loaded == nullptr)
        loaded = new Library(open(paths));
    return *loaded;
}

void check_cudnn(const Library &l, int status, const char *what) {
    if (status != 0)
        throw CudaError(std::string("conv2d: cuDNN failed at ") + what + ": " + l.error(status) +
                        "; another conv (auto, implicit_gemm) needs no cuDNN");
}

// A descriptor that destroys itself.
struct Descriptor {
    Descriptor(const Library &l, int (*create)(Pointer *), int (*destroy)(Pointer)) : destroy(destroy) {
        check_cudnn(l, create(&pointer), "a descriptor");
    }
    ~Descriptor() { destroy(pointer); }
    Descriptor(const Descriptor &) = delete;
    operator Pointer() const { return pointer; }

    Pointer pointer = nullptr;
    int (*destroy)(Pointer);
};

} // namespace

int64_t cudnn_version(const std::vector<std::string> &paths) {
    const std::lock_guard<std::mutex> lock(mutex);
    return static_cast<int64_t>(library(paths).version());
}

void conv2d_cudnn(Context &context, Conv2dPass pass, DType dtype, void *out, const void *a, const void *b,
                  const Conv2dShape &s) {
    static std::map<int, Pointer> handles; // one a device, kept until the process ends
    const std::lock_guard<std::mutex> lock(mutex);
    const Library &l = library(context.options().cudnn_paths);
    Pointer &handle = handles[context.device()];
    if (handle == nullptr)
        check_cudnn(l, l.create(&handle), "cudnnCreate");
    check_cudnn(l, l.set_stream(handle, context.stream()), "cudnnSetStream");

    const int type = dtype == DType::float32 ? FLOAT : DOUBLE;
    const int math = dtype == DType::float32 && !context.options().tf32 ? FMA_MATH : DEFAULT_MATH;
    const Descriptor x(l, l.create_tensor, l.destroy_tensor), y(l, l.create_tensor, l.destroy_tensor);
    const Descriptor weight(l, l.create_filter, l.destroy_filter);
    const Descriptor convolution(l, l.create_convolution, l.destroy_convolution);
    if (s.n > INT32_MAX)
        throw Refused("ShapeError", "conv2d: a batch of " + std::to_string(s.n) + " is more than cuDNN takes");
    const int n = static_cast<int>(s.n);
    check_cudnn(l, l.set_tensor(x, NCHW, type, n, s.c, s.h, s.w), "the input's shape");
    check_cudnn(l, l.set_tensor(y, NCHW, type, n, s.o, s.oh, s.ow), "the output's shape");
    check_cudnn(l, l.set_filter(weight, type, NCHW, s.o, s.group_c(), s.kh, s.kw), "the weight's shape");
    check_cudnn(l,
                l.set_convolution(convolution, s.pad_h, s.pad_w, s.stride_h, s.stride_w, s.dilation_h, s.dilation_w,
                                  CROSS_CORRELATION, type),
                "the window");
    check_cudnn(l, l.set_groups(convolution, s.groups), "groups");
    check_cudnn(l, l.set_math(convolution, math), "the precision");

    // operands in the order of cuDNN's three functions: forward (x, w) -> y, data (w, dy) -> dx, filter (x, dy) -> dw
    const int p = static_cast<int>(pass);
    const bool backward = pass != Conv2dPass::forward;
    const Pointer first = pass == Conv2dPass::backward_input ? weight : x, second = backward ? y : weight;
    const Pointer result = pass == Conv2dPass::forward ? y : pass == Conv2dPass::backward_input ? x : weight;
    const void *first_data = backward ? b : a, *second_data = backward ? a : b;
    size_t bytes = 0;
    check_cudnn(l, l.workspace[p](handle, first, second, convolution, result, ALGORITHM, &bytes),
                "the size of the workspace");
    Scratch workspace(context, bytes);
    const float one = 1, zero = 0;
    const double wide_one = 1, wide_zero = 0;
    const void *alpha = type == FLOAT ? static_cast<const void *>(&one) : &wide_one;
    const void *beta = type == FLOAT ? static_cast<const void *>(&zero) : &wide_zero;
    check_cudnn(l,
                l.run[p](handle, alpha, first, first_data, second, second_data, convolution, ALGORITHM,
                         workspace.as<void>(), bytes, beta, result, out),
                "the convolution");
}

} // namespace gradcuda
