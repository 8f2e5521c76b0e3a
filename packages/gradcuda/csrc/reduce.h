// Launchers of reduce.cu and argmax.cu.
#pragma once

#include "layout.h"

namespace gradcuda {

enum class ReduceOp { sum, max };

// How a contiguous array falls apart into outputs and the terms of each.
struct Reduction {
    Layout kept, terms; // one operand each: where output o begins, and where its term r lies from there
    int64_t outputs = 1, count = 1;
    bool columns = false; // neighbours in memory belong to neighbouring outputs
};

Reduction make_reduction(const Shape &shape, const bool (&reduced)[MAX_DIMS]);

// The dtype of the result: sums of integers and bool are int64.
DType reduced_dtype(ReduceOp op, DType dtype);

// Elements of the result's dtype that reduce_launch wants as workspace.
int64_t reduce_workspace(const Reduction &reduction);

// out (outputs,) = op over the terms. The same bits each time: a fixed tree, at most 32 terms one by one.
void reduce_launch(ReduceOp op, DType dtype, void *out, const void *x, const Reduction &reduction, void *workspace,
                   cudaStream_t stream);

// out (outputs,): the number of the first NaN term, else of the first of the largest. count >= 1.
void argmax_launch(DType dtype, int64_t *out, const void *x, const Reduction &reduction, cudaStream_t stream);

} // namespace gradcuda
