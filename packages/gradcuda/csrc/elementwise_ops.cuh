// What each elementwise operation does to one element; one functor each. NaN travels as IEEE 754 has it.
//
// W is the type in which it is computed: the float type itself, int64 for integers and bool.
#pragma once

#include <cstdint>
#include <cuda_runtime.h>
#include <type_traits>

namespace gradcuda {

template <typename T> using Wide = std::conditional_t<std::is_floating_point_v<T>, T, int64_t>;

namespace op {

struct Add {
    template <typename W> __device__ W operator()(W a, W b) const { return a + b; }
};
struct Subtract {
    template <typename W> __device__ W operator()(W a, W b) const { return a - b; }
};
struct Multiply {
    template <typename W> __device__ W operator()(W a, W b) const { return a * b; }
};
struct Divide {
    template <typename W> __device__ W operator()(W a, W b) const { return a / b; } // float types only
};
struct Power {
    __device__ float operator()(float a, float b) const { return powf(a, b); }
    __device__ double operator()(double a, double b) const { return pow(a, b); }
    __device__ int64_t operator()(int64_t a, int64_t b) const {
        int64_t result = 1;
        for (uint64_t left = b < 0 ? 0 : b; left > 0; left >>= 1, a *= a)
            if (left & 1)
                result *= a;
        return b >= 0 ? result : a == 1 ? 1 : 0;
    }
};
struct Maximum { // NaN if either is
    template <typename W> __device__ W operator()(W a, W b) const { return (a > b || a != a) ? a : b; }
};
struct Greater {
    template <typename W> __device__ bool operator()(W a, W b) const { return a > b; }
};
struct GreaterEqual {
    template <typename W> __device__ bool operator()(W a, W b) const { return a >= b; }
};
struct Equal {
    template <typename W> __device__ bool operator()(W a, W b) const { return a == b; }
};
struct ReluBackward { // grad, y
    template <typename W> __device__ W operator()(W grad, W y) const { return W(0) >= y ? W(0) : grad; }
};
struct SigmoidBackward {
    template <typename W> __device__ W operator()(W grad, W y) const { return grad * (y * (W(1) - y)); }
};
struct TanhBackward {
    template <typename W> __device__ W operator()(W grad, W y) const { return grad * (W(1) - y * y); }
};

struct Negative {
    template <typename W> __device__ W operator()(W x) const { return -x; }
};
struct Abs {
    __device__ float operator()(float x) const { return fabsf(x); }
    __device__ double operator()(double x) const { return fabs(x); }
    __device__ int64_t operator()(int64_t x) const { return x < 0 ? -x : x; }
};
struct Sign {
    template <typename W> __device__ W operator()(W x) const { return x != x ? x : W((x > 0) - (x < 0)); }
};
struct Exp {
    __device__ float operator()(float x) const { return expf(x); }
    __device__ double operator()(double x) const { return exp(x); }
};
struct Log {
    __device__ float operator()(float x) const { return logf(x); }
    __device__ double operator()(double x) const { return log(x); }
};
struct Log1p {
    __device__ float operator()(float x) const { return log1pf(x); }
    __device__ double operator()(double x) const { return log1p(x); }
};
struct Sqrt {
    __device__ float operator()(float x) const { return sqrtf(x); }
    __device__ double operator()(double x) const { return sqrt(x); }
};
struct Tanh {
    __device__ float operator()(float x) const { return tanhf(x); }
    __device__ double operator()(double x) const { return tanh(x); }
};
struct Relu { // NaN stays
    template <typename W> __device__ W operator()(W x) const { return x <= W(0) ? W(0) : x; }
};
struct Sigmoid { // exp of a negative number only: never overflows
    template <typename W> __device__ W operator()(W x) const {
        const W small = Exp()(-Abs()(x));
        return (x >= W(0) ? W(1) : small) / (W(1) + small);
    }
};

} // namespace op
} // namespace gradcuda
