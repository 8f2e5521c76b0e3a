// mma_tf32.cuh: one tensor-core product, m16n8k8 in TF32 with float32 sums (PTX ISA, "mma.m16n8k8 with .tf32").
//
// Used only under precision="tf32". A lane is (row = lane / 4, part = lane % 4) and holds of
//   A (16, 8): a0 (row, part), a1 (row + 8, part), a2 (row, part + 4), a3 (row + 8, part + 4);
//   B (8, 8):  b0 (part, row), b1 (part + 4, row);  C (16, 8): c0 c1 (row, 2*part + 0..1), c2 c3 (row + 8, the same).
#pragma once

namespace gradcuda {

// Round to the 10 mantissa bits that the tensor cores read (they would cut the rest off).
__device__ inline float to_tf32(float x) {
#if __CUDA_ARCH__ >= 800
    unsigned bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
    return __uint_as_float(bits);
#else
    return x;
#endif
}

// c += a @ b. Before compute capability 8.0 there is no such instruction; the host refuses tf32 there.
__device__ inline void mma_m16n8k8(float (&c)[4], const float (&a)[4], const float (&b)[2]) {
#if __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(__float_as_uint(a[0])), "r"(__float_as_uint(a[1])), "r"(__float_as_uint(a[2])),
          "r"(__float_as_uint(a[3])), "r"(__float_as_uint(b[0])), "r"(__float_as_uint(b[1])));
#else
    __trap();
#endif
}

} // namespace gradcuda
