// The few functions of array.h that are not inline.
#include "array.h"

namespace gradcuda {

size_t item_size(DType dtype) {
    switch (dtype) {
    case DType::float64:
    case DType::int64:
        return 8;
    case DType::float32:
    case DType::int32:
        return 4;
    default:
        return 1;
    }
}

const char *dtype_name(DType dtype) {
    static const char *const names[] = {"float32", "float64", "int32", "int64", "uint8", "bool"};
    return names[static_cast<int>(dtype)];
}

void Shape::push(int64_t n) {
    if (ndim == MAX_DIMS)
        throw Refused("ShapeError", "the CUDA backend has arrays of at most " + std::to_string(MAX_DIMS) + " axes");
    size[ndim++] = n;
}

std::string to_string(const Shape &shape) {
    std::string text = "(";
    for (int i = 0; i < shape.ndim; ++i)
        text += std::to_string(shape[i]) + (i + 1 < shape.ndim ? ", " : shape.ndim == 1 ? "," : "");
    return text + ")";
}

DeviceArray empty(Context &context, const Shape &shape, DType dtype) {
    const size_t bytes = static_cast<size_t>(shape.count()) * item_size(dtype);
    return DeviceArray(allocate(context, bytes), shape, dtype);
}

} // namespace gradcuda
