// Host side of layout.h.
#include "layout.h"

namespace gradcuda {

Strides contiguous_strides(const Shape &shape) {
    Strides strides;
    int64_t stride = 1;
    for (int i = shape.ndim - 1; i >= 0; --i) {
        strides[i] = stride;
        stride *= shape[i];
    }
    return strides;
}

Strides broadcast_strides(const char *operation, const Shape &shape, const Shape &out) {
    const int lead = out.ndim - shape.ndim;
    const Strides own = contiguous_strides(shape);
    Strides strides;
    for (int i = 0; i < out.ndim; ++i) {
        const int64_t n = i < lead ? 1 : shape[i - lead];
        if (lead < 0 || (n != out[i] && n != 1))
            throw Refused("ShapeError", std::string(operation) + ": " + to_string(shape) + " does not broadcast to " +
                                            to_string(out));
        strides[i] = n == 1 ? 0 : own[i - lead];
    }
    return strides;
}

Shape broadcast_shapes(const char *operation, std::initializer_list<const Shape *> shapes) {
    Shape out;
    for (const Shape *shape : shapes)
        while (out.ndim < shape->ndim)
            out.push(1);
    for (const Shape *shape : shapes) {
        const int lead = out.ndim - shape->ndim;
        for (int i = 0; i < shape->ndim; ++i) {
            const int64_t n = (*shape)[i];
            int64_t &size = out[lead + i];
            if (n != size && n != 1 && size != 1) {
                std::string text = std::string(operation) + ": shapes do not broadcast: got";
                for (const Shape *one : shapes)
                    text += " " + to_string(*one);
                throw Refused("ShapeError", text);
            }
            if (size == 1)
                size = n;
        }
    }
    return out;
}

Layout make_layout(const Shape &shape, std::initializer_list<Strides> operands) {
    Layout layout;
    layout.is_small = shape.count() <= UINT32_MAX;
    for (int i = 0; i < shape.ndim; ++i) {
        if (shape[i] == 1)
            continue;
        const int last = layout.ndim - 1;
        bool joins = last >= 0;
        int k = 0;
        for (const Strides &strides : operands) {
            joins = joins && layout.stride[k][last] == strides[i] * shape[i];
            ++k;
        }
        const int axis = joins ? last : layout.ndim++;
        layout.size[axis] = joins ? layout.size[axis] * shape[i] : shape[i];
        k = 0;
        for (const Strides &strides : operands)
            layout.stride[k++][axis] = strides[i];
    }
    if (layout.ndim == 0) {
        layout.ndim = 1;
        layout.size[0] = 1;
    }
    return layout;
}

} // namespace gradcuda
