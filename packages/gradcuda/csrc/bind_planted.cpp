// plant(x, fault): run a faulty kernel on x, float32 of at least 256 elements. For tests and tools only.
#include "bind.h"

#include "planted.h"

namespace gradcuda {

namespace {

void plant(const DeviceArray &x, const std::string &fault) {
    Scope scope("plant", x);
    if (x.dtype != DType::float32 || x.count() < 256)
        throw nb::value_error("plant: float32 of at least 256 elements");
    if (fault == "overrun") {
        plant_overrun_launch(x.as<float>(), x.count(), scope.stream());
    } else if (fault == "race") {
        plant_race_launch(x.as<float>(), scope.stream());
    } else if (fault == "uninitialized") {
        Scratch unwritten(scope.context, 1024);
        plant_uninitialized_launch(x.as<float>(), unwritten.as<float>(), scope.stream());
    } else if (fault == "illegal address") {
        plant_illegal_address_launch(scope.stream());
    } else {
        throw nb::value_error("plant: overrun, race, uninitialized or illegal address");
    }
}

} // namespace

void bind_planted(nb::module_ &m) { m.def("plant", &plant, "x"_a, "fault"_a); }

} // namespace gradcuda
