// DeviceArray: a buffer on the device that views may share, a shape and a dtype; always contiguous, row-major.
//
// Contract for every operation: outputs come from `empty` (or `Scratch` for workspace) and are overwritten wholly;
// a launcher gets plain pointers and sizes, and is skipped when the output is empty. Copying a DeviceArray shares
// its memory. What is freed may be used again at once by later work on the same stream, never by another.
// Next: memory.h, where the bytes come from; bind.h, how Python calls in.
#pragma once

#include "context.h"
#include "memory.h"

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>

namespace gradcuda {

constexpr int MAX_DIMS = 8;

enum class DType : uint8_t { float32, float64, int32, int64, uint8, boolean };

size_t item_size(DType dtype);
const char *dtype_name(DType dtype); // "float32", "bool"
inline bool is_float(DType dtype) { return dtype == DType::float32 || dtype == DType::float64; }

struct Shape {
    int ndim = 0;
    int64_t size[MAX_DIMS] = {};

    Shape() = default;
    Shape(std::initializer_list<int64_t> sizes) {
        for (int64_t n : sizes)
            push(n);
    }
    void push(int64_t n); // throws ShapeError beyond MAX_DIMS
    int64_t count() const {
        int64_t n = 1;
        for (int i = 0; i < ndim; ++i)
            n *= size[i];
        return n;
    }
    int64_t operator[](int axis) const { return size[axis]; }
    int64_t &operator[](int axis) { return size[axis]; }
    bool operator==(const Shape &other) const {
        if (ndim != other.ndim)
            return false;
        for (int i = 0; i < ndim; ++i)
            if (size[i] != other.size[i])
                return false;
        return true;
    }
    bool operator!=(const Shape &other) const { return !(*this == other); }
};

std::string to_string(const Shape &shape); // "(3, 4)"

class DeviceArray {
  public:
    DeviceArray(std::shared_ptr<Buffer> buffer, const Shape &shape, DType dtype)
        : shape(shape), dtype(dtype), buffer_(std::move(buffer)) {}

    Shape shape;
    DType dtype;

    Context &context() const { return buffer_->context(); }
    void *data() const { return buffer_->data(); }
    template <typename T> T *as() const { return static_cast<T *>(buffer_->data()); }
    int64_t count() const { return shape.count(); }
    size_t bytes() const { return static_cast<size_t>(count()) * item_size(dtype); }
    const std::shared_ptr<Buffer> &buffer() const { return buffer_; }

    // The same memory under another shape of equal count.
    DeviceArray view(const Shape &other) const { return DeviceArray(buffer_, other, dtype); }

  private:
    std::shared_ptr<Buffer> buffer_;
};

// A new array; its contents are whatever was there. Out of memory: see memory.h.
DeviceArray empty(Context &context, const Shape &shape, DType dtype);

// Workspace of so many bytes until the end of the C++ scope. Later work on the stream may reuse it, in order.
class Scratch {
  public:
    Scratch(Context &context, size_t bytes) : buffer_(allocate(context, bytes)) {}
    template <typename T> T *as() const { return static_cast<T *>(buffer_->data()); }

  private:
    std::shared_ptr<Buffer> buffer_;
};

// Opens every operation: Scope scope("max_pool2d", x, indices). Checks that the device can be used (not lost, not in
// a forked child, no other thread is recording) and that all arrays live in one context; makes the device current.
class Scope {
  public:
    template <typename... Arrays>
    Scope(const char *operation, const DeviceArray &first, const Arrays &...others)
        : Scope(operation, first.context()) {
        (check_same(operation, first, others), ...);
    }
    Scope(const char *operation, Context &context) : context(context), guard_(context.device()) {
        context.enter(operation);
    }

    Context &context;
    cudaStream_t stream() const { return context.stream(); }

  private:
    static void check_same(const char *operation, const DeviceArray &a, const DeviceArray &b) {
        if (&a.context() != &b.context())
            throw Refused("BackendMismatch", std::string(operation) + ": arrays of two CUDA backends");
    }
    DeviceGuard guard_;
};

} // namespace gradcuda
