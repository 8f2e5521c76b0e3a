// Graph: the work of one step, recorded once and replayed with one call.
//
// Recording runs the step's Python and C++ code, but the device executes nothing. Everything that changes from step to
// step (data cursor, counters, learning rate, loss) therefore lives in device memory. Arrays made while recording come
// from a pool that the graph owns (memory.h): each replay writes the same addresses.
#pragma once

#include "context.h"
#include "memory.h"

#include <memory>

namespace gradcuda {

class Graph {
  public:
    Graph(std::shared_ptr<Context> context, std::shared_ptr<Pool> pool, cudaGraphExec_t executable, size_t nodes);
    ~Graph();
    Graph(const Graph &) = delete;
    void replay();
    size_t nodes() const { return nodes_; } // kernels, copies and fills in it
    MemoryStatistics memory() const { return pool_->statistics(); }

  private:
    std::shared_ptr<Context> context_;
    std::shared_ptr<Pool> pool_;
    cudaGraphExec_t executable_;
    size_t nodes_;
};

// Records from construction until finish(); destroyed without it (an exception), it drops what was recorded and leaves
// the context as it was.
class Recording {
  public:
    explicit Recording(Context &context);
    ~Recording();
    Recording(const Recording &) = delete;
    std::shared_ptr<Graph> finish();

  private:
    Context &context_;
    std::shared_ptr<Pool> pool_;
    bool open_ = false;
};

} // namespace gradcuda
