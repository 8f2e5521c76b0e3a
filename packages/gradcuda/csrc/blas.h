// cuBLAS, loaded at the first product by dlopen: nothing is needed at build time, and importing never fails for it.
//
// Everything here is row-major. cuBLAS is column-major: it sees a row-major (m, n) matrix as its (n, m) transpose, so
// C = A @ B is asked for as C' = B' @ A', with operands and sizes swapped and no data moved. The handle has a fixed
// workspace, so products can be recorded, and repeat bit for bit. float32 is float32; TF32 only by Options::tf32.
#pragma once

#include "array.h"

#include <memory>

namespace gradcuda {

// C (m, n) = op(A) (m, k) @ op(B) (k, n) [+ C], `batch` times. op is a transpose where the flag is set.
struct Gemm {
    int64_t m, n, k;
    bool transpose_a = false, transpose_b = false;
    int64_t lda, ldb, ldc;                            // row lengths in memory, as stored
    int64_t batch = 1;                                //
    int64_t stride_a = 0, stride_b = 0, stride_c = 0; // elements between batch entries; 0 shares one
    bool accumulate = false;                          // add to what C holds
};

class Blas {
  public:
    explicit Blas(Context &context); // throws CudaError: not found, where it looked
    ~Blas();
    const std::string &version() const { return version_; }
    void gemm(const Gemm &g, const float *a, const float *b, float *c);
    void gemm(const Gemm &g, const double *a, const double *b, double *c);

  private:
    struct Library;
    Context &context_;
    std::unique_ptr<Library> library_;
    void *handle_ = nullptr;
    void *workspace_ = nullptr;
    std::string version_;
};

// The same by dtype, float32 or float64. m, n, k and batch are at least 1: callers deal with what is empty.
void gemm(Context &context, DType dtype, const Gemm &g, const void *a, const void *b, void *c);

// One product of contiguous matrices: a (m, k) or (k, m), b (k, n) or (n, k), out (m, n).
void matmul_into(Context &context, DType dtype, const void *a, const void *b, void *out, int64_t m, int64_t n,
                 int64_t k, bool transpose_a, bool transpose_b);

} // namespace gradcuda
