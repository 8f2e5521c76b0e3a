// Capture, instantiate, replay.
#include "graph.h"

namespace gradcuda {

Recording::Recording(Context &context) : context_(context) {
    context.enter_host("capture_graph");
    // relaxed: cudaMalloc, which the private pool may call, is allowed; our own waiting calls refuse by themselves
    CUDA_CHECK(cudaStreamBeginCapture(context.stream(), cudaStreamCaptureModeRelaxed));
    context.begin_recording();
    pool_ = context.pool();
    open_ = true;
}

Recording::~Recording() {
    if (!open_)
        return;
    cudaGraph_t graph = nullptr;
    cudaStreamEndCapture(context_.stream(), &graph);
    if (graph != nullptr)
        cudaGraphDestroy(graph);
    cudaGetLastError();
    context_.end_recording();
}

std::shared_ptr<Graph> Recording::finish() {
    cudaGraph_t graph = nullptr;
    open_ = false;
    const cudaError_t status = cudaStreamEndCapture(context_.stream(), &graph);
    context_.end_recording();
    check(status, "capture_graph");
    size_t nodes = 0;
    cudaGraphExec_t executable = nullptr;
    cudaGraphGetNodes(graph, nullptr, &nodes);
    const cudaError_t made = cudaGraphInstantiate(&executable, graph, 0);
    cudaGraphDestroy(graph);
    check(made, "cudaGraphInstantiate");
    auto result = std::make_shared<Graph>(context_.shared_from_this(), pool_, executable, nodes);
    CUDA_CHECK(cudaGraphUpload(executable, context_.stream()));
    return result;
}

Graph::Graph(std::shared_ptr<Context> context, std::shared_ptr<Pool> pool, cudaGraphExec_t executable, size_t nodes)
    : context_(std::move(context)), pool_(std::move(pool)), executable_(executable), nodes_(nodes) {}

Graph::~Graph() {
    if (!context_->usable())
        return;
    DeviceGuard guard(context_->device());
    if (!context_->recording()) // a replay may still read the pool
        cudaStreamSynchronize(context_->stream());
    cudaGraphExecDestroy(executable_);
}

void Graph::replay() {
    DeviceGuard guard(context_->device());
    context_->enter_host("replay");
    CUDA_CHECK(cudaGraphLaunch(executable_, context_->stream()));
}

} // namespace gradcuda
