// cuBLAS by dlopen: six entry points declared by hand, the same since CUDA 12; see blas.h.
#include "blas.h"

#include "errors.h"

#include <climits>
#include <dlfcn.h>

namespace gradcuda {

namespace {

constexpr size_t WORKSPACE = 32u << 20; // what cuBLAS asks for on Hopper; more than enough elsewhere
constexpr int OP_N = 0, OP_T = 1, DEFAULT_MATH = 0, TF32_MATH = 3;

int as_int(int64_t n) {
    if (n > INT_MAX)
        throw Refused("ShapeError", "matmul: an axis of " + std::to_string(n) + " is longer than cuBLAS takes");
    return static_cast<int>(n);
}

const char *status_text(int status) {
    switch (status) {
    case 1:
        return "not initialized";
    case 3:
        return "out of memory";
    case 7:
        return "invalid value";
    case 8:
        return "this device is not supported";
    case 13:
        return "execution failed";
    case 14:
        return "internal error";
    default:
        return "see cublasStatus_t";
    }
}

void check_blas(int status, const char *what) {
    if (status != 0)
        throw CudaError(std::string("matmul: ") + what + " failed with cuBLAS status " + std::to_string(status) + ": " +
                        status_text(status));
}

void *open_library(const std::vector<std::string> &paths) {
    const char *name = "libcublas.so.13";
    if (void *found = dlopen(name, RTLD_LAZY | RTLD_NOLOAD)) // another library may have brought it
        return found;
    std::string looked;
    for (const std::string &path : paths) {
        if (void *found = dlopen(path.c_str(), RTLD_LAZY))
            return found;
        looked += path + ", ";
    }
    if (void *found = dlopen(name, RTLD_LAZY))
        return found;
    throw CudaError(std::string("matmul: cuBLAS was not found (looked for ") + looked + name +
                    "): pip install nvidia-cublas");
}

} // namespace

struct Blas::Library {
    int (*create)(void **);
    int (*destroy)(void *);
    int (*set_stream)(void *, cudaStream_t);
    int (*set_workspace)(void *, void *, size_t);
    int (*set_math_mode)(void *, int);
    int (*get_version)(void *, int *);
    int (*sgemm)(void *, int, int, int, int, int, const float *, const float *, int, long long, const float *, int,
                 long long, const float *, float *, int, long long, int);
    int (*dgemm)(void *, int, int, int, int, int, const double *, const double *, int, long long, const double *, int,
                 long long, const double *, double *, int, long long, int);

    explicit Library(const std::vector<std::string> &paths) {
        void *library = open_library(paths); // stays loaded until the process ends
        const auto load = [library](auto &function, const char *name) {
            function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, name));
            if (function == nullptr)
                throw CudaError(std::string("matmul: the cuBLAS that was found has no ") + name);
        };
        load(create, "cublasCreate_v2");
        load(destroy, "cublasDestroy_v2");
        load(set_stream, "cublasSetStream_v2");
        load(set_workspace, "cublasSetWorkspace_v2");
        load(set_math_mode, "cublasSetMathMode");
        load(get_version, "cublasGetVersion_v2");
        load(sgemm, "cublasSgemmStridedBatched");
        load(dgemm, "cublasDgemmStridedBatched");
    }
};

Blas::Blas(Context &context) : context_(context), library_(std::make_unique<Library>(context.options().cublas_paths)) {
    check_blas(library_->create(&handle_), "cublasCreate");
    int version = 0;
    library_->get_version(handle_, &version);
    version_ = std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
               std::to_string(version % 100);
    CUDA_CHECK(cudaMalloc(&workspace_, WORKSPACE));
    check_blas(library_->set_stream(handle_, context.stream()), "cublasSetStream"); // resets the workspace, so first
    check_blas(library_->set_workspace(handle_, workspace_, WORKSPACE), "cublasSetWorkspace");
    check_blas(library_->set_math_mode(handle_, context.options().tf32 ? TF32_MATH : DEFAULT_MATH),
               "cublasSetMathMode");
}

Blas::~Blas() {
    if (handle_ != nullptr)
        library_->destroy(handle_);
    cudaFree(workspace_);
}

namespace {

// The row-major trick: ask for the transposed product with operands and sizes swapped.
template <typename T, typename F>
void swapped_gemm(F function, void *handle, const Gemm &g, const T *a, const T *b, T *c) {
    const T one = 1, beta = g.accumulate ? 1 : 0;
    check_blas(function(handle, g.transpose_b ? OP_T : OP_N, g.transpose_a ? OP_T : OP_N, as_int(g.n), as_int(g.m),
                        as_int(g.k), &one, b, as_int(g.ldb), g.stride_b, a, as_int(g.lda), g.stride_a, &beta, c,
                        as_int(g.ldc), g.stride_c, as_int(g.batch)),
               "gemm");
}

} // namespace

void Blas::gemm(const Gemm &g, const float *a, const float *b, float *c) {
    swapped_gemm(library_->sgemm, handle_, g, a, b, c);
}

void Blas::gemm(const Gemm &g, const double *a, const double *b, double *c) {
    swapped_gemm(library_->dgemm, handle_, g, a, b, c);
}

void gemm(Context &context, DType dtype, const Gemm &g, const void *a, const void *b, void *c) {
    if (dtype == DType::float32)
        context.blas().gemm(g, static_cast<const float *>(a), static_cast<const float *>(b), static_cast<float *>(c));
    else
        context.blas().gemm(g, static_cast<const double *>(a), static_cast<const double *>(b),
                            static_cast<double *>(c));
}

void matmul_into(Context &context, DType dtype, const void *a, const void *b, void *out, int64_t m, int64_t n,
                 int64_t k, bool transpose_a, bool transpose_b) {
    Gemm g{m, n, k, transpose_a, transpose_b};
    g.lda = transpose_a ? m : k;
    g.ldb = transpose_b ? k : n;
    g.ldc = n;
    gemm(context, dtype, g, a, b, out);
}

} // namespace gradcuda
