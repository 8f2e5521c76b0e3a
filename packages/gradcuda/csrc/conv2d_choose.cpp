// conv2d_choose.cpp: the table by which conv="auto" picks an algorithm. Written, never timed at run time: equal shapes
// run equal kernels, so equal seeds give equal bits, on every GPU.
//
// | pass                    | where                                   | algorithm     | because                   |
// | ----------------------- | --------------------------------------- | ------------- | ------------------------- |
// | all                     | groups, at most 4 channels out of each  | direct        | tiles have 16 rows        |
// | forward, backward_input | 1x1 plain, 64 channels or more in, out  | unroll        | a plain product: cuBLAS's |
// | all                     | everything else                         | implicit_gemm | no matrix in memory       |
//
// "Plain" is stride 1 without padding; "channels out" are those that the pass computes. The limits are reckoned, not
// measured: 4 is where a tile is a quarter full, 64 where a product is large enough for cuBLAS to be at its best.
// cuDNN never runs unless it is asked for by name.
#include "conv2d.h"

namespace gradcuda {

Conv2dAlgorithm choose_conv2d(const std::string &name, const Conv2dShape &s, Conv2dPass pass) {
    if (name == "direct")
        return Conv2dAlgorithm::direct;
    if (name == "unroll")
        return Conv2dAlgorithm::unroll;
    if (name == "implicit_gemm")
        return Conv2dAlgorithm::implicit_gemm;
    if (name == "cudnn")
        return Conv2dAlgorithm::cudnn;
    if (name != "auto")
        throw Refused("ArgumentError",
                      "conv2d: no algorithm '" + name + "': choose auto, direct, unroll, implicit_gemm or cudnn");
    const int rows = pass == Conv2dPass::backward_input ? s.group_c() : s.group_o();
    if (s.groups > 1 && rows <= 4)
        return Conv2dAlgorithm::direct;
    if (pass != Conv2dPass::backward_weight && s.pointwise() && s.group_c() >= 64 && s.group_o() >= 64)
        return Conv2dAlgorithm::unroll;
    return Conv2dAlgorithm::implicit_gemm;
}

} // namespace gradcuda
