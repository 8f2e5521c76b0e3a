// Recording a step, in Python: capture_graph(context, function) -> Graph. Used through gradcore.capture.
#include "bind.h"

#include "graph.h"

namespace gradcuda {

namespace {

// Call the function once while its work is recorded, not executed. What it raises goes through; nothing is left behind.
std::shared_ptr<Graph> capture_graph(Context &context, const nb::callable &function) {
    DeviceGuard guard(context.device());
    Recording recording(context);
    function();
    return recording.finish();
}

} // namespace

void bind_graph(nb::module_ &m) {
    nb::class_<Graph>(m, "Graph", "A recorded step; its arrays keep their addresses from replay to replay.")
        .def("replay", &Graph::replay, "Do the step again; returns before it is done")
        .def_prop_ro("nodes", &Graph::nodes, "Kernels, copies and fills in it")
        .def_prop_ro("reserved", [](const Graph &g) { return g.memory().reserved; }, "Bytes that belong to it");
    m.def("capture_graph", &capture_graph, "context"_a, "function"_a);
}

} // namespace gradcuda
