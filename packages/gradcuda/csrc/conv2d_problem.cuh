// conv2d_problem.cuh: convolution written as a matrix product, entry by entry, without the matrix.
//
// A problem says, for one group, what entry (row, k) of the left matrix and entry (k, column) of the right one is, and
// where entry (row, column) of the product goes. A column is a pixel of the whole batch; a thread of the kernel keeps
// one column for its whole life, so what depends on the column alone is worked out once (struct Column).
// Padding is a real zero that is multiplied like any other number, as in the formula. Next: conv2d_implicit_gemm.cu.
#pragma once

#include "conv2d.h"
#include "fast_divide.cuh"

namespace gradcuda {

// What entry k of the inner axis adds to a column's address. A block works the taps of its next step out once, in
// shared memory, instead of taking k apart for every entry.
struct Tap {
    int64_t offset; // in the right matrix' image
    int h, w;
};

struct Pixel { // of a batch of planes
    int64_t n;
    int p;
};

// The pixel that is `offset` places further on: one short division where the first took a long one.
__device__ inline Pixel advance(const Pixel &first, int offset, const FastDivide &plane) {
    int p = first.p + offset;
    const int n = plane.split(p);
    return {first.n + n, p};
}

// y[o, pixel] = sum over k = (c, kh, kw) of weight[o, k] * x[c, the pixel's window at (kh, kw)]
template <class T> struct ForwardProblem {
    const T *x, *weight, *bias;
    T *y;
    Conv2dShape s;
    FastDivide taps, kernel_width, plane, width;

    ForwardProblem(const T *x, const T *weight, const T *bias, T *y, const Conv2dShape &s)
        : x(x), weight(weight), bias(bias), y(y), s(s), taps(s.taps()), kernel_width(s.kw),
          plane(FastDivide(s.out_plane())), width(FastDivide(s.ow)) {}

    __host__ __device__ int rows() const { return s.o / s.groups; }
    __host__ __device__ int depth() const { return s.c / s.groups * s.kh * s.kw; }
    __host__ __device__ int64_t columns() const { return s.n * s.oh * s.ow; }

    struct Column {
        const T *from; // the window's upper left corner in the group's first channel; it may lie on padding
        int h, w;
    };

    __device__ Column column(int group, const Pixel &at) const {
        int j = at.p;
        const int h = width.split(j) * s.stride_h - s.pad_h, w = j * s.stride_w - s.pad_w;
        return {x + (at.n * s.c + group * (s.c / s.groups)) * (s.h * s.w) + (int64_t{h} * s.w + w), h, w};
    }

    __device__ Tap tap(int k) const {
        const int c = taps.split(k), h = kernel_width.split(k) * s.dilation_h, w = k * s.dilation_w;
        return {int64_t{c} * (s.h * s.w) + (int64_t{h} * s.w + w), h, w};
    }

    // left entry (row, k) is weight[row * left_stride() + left_offset(group, k)]
    __device__ int64_t left_stride() const { return depth(); }
    __device__ int64_t left_offset(int group, int k) const { return int64_t{group} * rows() * depth() + k; }

    __device__ T right(const Column &at, const Tap &tap) const {
        const int h = at.h + tap.h, w = at.w + tap.w;
        if (static_cast<unsigned>(h) >= static_cast<unsigned>(s.h) ||
            static_cast<unsigned>(w) >= static_cast<unsigned>(s.w))
            return T(0);
        return at.from[tap.offset];
    }

    // where row 0 of the pixel's column goes; the next row lies one plane further
    __device__ T *out(int group, const Pixel &at) const {
        return y + (at.n * s.o + int64_t{group} * rows()) * (s.oh * s.ow) + at.p;
    }

    __device__ T finish(int group, int row, T sum) const { return bias ? sum + bias[group * rows() + row] : sum; }
};

// dx[c, pixel] = sum over k = (o, kh, kw) of weight[o, c, kh, kw] * grad[o, the output that saw the pixel at (kh, kw)]
template <class T> struct BackwardInputProblem {
    const T *grad, *weight;
    T *dx;
    Conv2dShape s;
    FastDivide taps, kernel_width, plane, width, stride_h, stride_w;

    BackwardInputProblem(const T *grad, const T *weight, T *dx, const Conv2dShape &s)
        : grad(grad), weight(weight), dx(dx), s(s), taps(s.taps()), kernel_width(s.kw), plane(FastDivide(s.plane())),
          width(FastDivide(s.w)), stride_h(s.stride_h), stride_w(s.stride_w) {}

    __host__ __device__ int rows() const { return s.c / s.groups; }
    __host__ __device__ int depth() const { return s.o / s.groups * s.kh * s.kw; }
    __host__ __device__ int64_t columns() const { return s.n * s.h * s.w; }

    struct Column {
        const T *from; // the gradient's image, at the group's first channel
        int h, w;      // the pixel, counted from the padding's corner
    };

    __device__ Column column(int group, const Pixel &at) const {
        int j = at.p;
        const int i = width.split(j);
        return {grad + (at.n * s.o + group * (s.o / s.groups)) * (s.oh * s.ow), i + s.pad_h, j + s.pad_w};
    }

    __device__ Tap tap(int k) const {
        const int o = taps.split(k), h = kernel_width.split(k) * s.dilation_h, w = k * s.dilation_w;
        return {int64_t{o} * (s.oh * s.ow), h, w};
    }

    __device__ int64_t left_stride() const { return s.kh * s.kw; }
    __device__ int64_t left_offset(int group, int k) const {
        const int o = taps.split(k); // k is now the tap
        return (int64_t{group} * (s.o / s.groups) + o) * rows() * (s.kh * s.kw) + k;
    }

    __device__ T right(const Column &at, const Tap &tap) const {
        int i = at.h - tap.h, j = at.w - tap.w;
        if (i < 0 || j < 0)
            return T(0);
        if (s.stride_h != 1 || s.stride_w != 1) { // the same for all threads
            int rest_h = i, rest_w = j;
            i = stride_h.split(rest_h);
            j = stride_w.split(rest_w);
            if (rest_h || rest_w)
                return T(0);
        }
        return i < s.oh && j < s.ow ? at.from[tap.offset + (i * s.ow + j)] : T(0);
    }

    __device__ T *out(int group, const Pixel &at) const {
        return dx + (at.n * s.c + int64_t{group} * rows()) * (s.h * s.w) + at.p;
    }

    __device__ T finish(int, int, T sum) const { return sum; }
};

} // namespace gradcuda
