// The in-place optimizers: lists of arrays into one table of pointers for each element type.
#include "bind.h"

#include "optim.h"

namespace gradcuda {

namespace {

using Arrays = std::vector<DeviceArray>;

void check_rate(const char *operation, const DeviceArray &rate) {
    if (rate.dtype != DType::float64 || rate.count() != 1)
        throw Refused("DTypeError", std::string(operation) + ": the rate must be one float64, got " +
                                        to_string(rate.shape) + " of " + dtype_name(rate.dtype));
}

void check_length(const char *operation, size_t expected, const Arrays &arrays, const char *what) {
    if (arrays.size() != expected)
        throw Refused("ShapeError", std::string(operation) + ": got " + std::to_string(expected) + " parameters and " +
                                        std::to_string(arrays.size()) + " " + what);
}

void check_like(const char *operation, const DeviceArray &parameter, const DeviceArray &other) {
    if (&other.context() != &parameter.context())
        throw Refused("BackendMismatch", std::string(operation) + ": arrays of two CUDA backends");
    if (other.shape != parameter.shape || other.dtype != parameter.dtype)
        throw Refused("ShapeError", std::string(operation) + ": got " + to_string(other.shape) + " of " +
                                        dtype_name(other.dtype) + " for a parameter " + to_string(parameter.shape) +
                                        " of " + dtype_name(parameter.dtype));
}

// The parameters of one element type; the others are skipped. firsts and seconds may be empty.
template <class T>
std::vector<Update<T>> collect(const Context &context, const char *operation, DType dtype, const Arrays &parameters,
                               const Arrays &grads, const Arrays &firsts, const Arrays &seconds, const Arrays &steps) {
    std::vector<Update<T>> updates;
    for (size_t i = 0; i < parameters.size(); i++) {
        const DeviceArray &p = parameters[i];
        require_float(operation, p.dtype);
        if (p.dtype != dtype)
            continue;
        if (&p.context() != &context)
            throw Refused("BackendMismatch", std::string(operation) + ": arrays of two CUDA backends");
        check_like(operation, p, grads[i]);
        if (!firsts.empty())
            check_like(operation, p, firsts[i]);
        if (!seconds.empty())
            check_like(operation, p, seconds[i]);
        if (steps[i].dtype != DType::int64 || steps[i].count() != 1 || &steps[i].context() != &p.context())
            throw Refused("DTypeError", std::string(operation) + ": a step count must be one int64");
        updates.push_back({p.as<T>(), grads[i].as<const T>(), firsts.empty() ? nullptr : firsts[i].as<T>(),
                           seconds.empty() ? nullptr : seconds[i].as<T>(), steps[i].as<int64_t>(), p.count()});
    }
    return updates;
}

void sgd_(const Arrays &parameters, const Arrays &grads, const Arrays &velocities, const Arrays &steps,
          const DeviceArray &rate, double momentum, double dampening, double weight_decay, bool nesterov) {
    Scope scope("sgd_", rate);
    check_rate("sgd_", rate);
    check_length("sgd_", parameters.size(), grads, "gradients");
    check_length("sgd_", parameters.size(), steps, "step counts");
    check_length("sgd_", momentum != 0.0 ? parameters.size() : velocities.size(), velocities, "velocities");
    const SgdOptions options{momentum, dampening, weight_decay, nesterov};
    const Arrays none;
    const Arrays &firsts = momentum != 0.0 ? velocities : none;
    const double *lr = rate.as<double>();
    sgd_update(collect<float>(scope.context, "sgd_", DType::float32, parameters, grads, firsts, none, steps), lr,
               options, scope.stream());
    sgd_update(collect<double>(scope.context, "sgd_", DType::float64, parameters, grads, firsts, none, steps), lr,
               options, scope.stream());
}

void adam_(const Arrays &parameters, const Arrays &grads, const Arrays &firsts, const Arrays &seconds,
           const Arrays &steps, const DeviceArray &rate, double beta1, double beta2, double eps, double weight_decay,
           bool decoupled) {
    Scope scope("adam_", rate);
    check_rate("adam_", rate);
    check_length("adam_", parameters.size(), grads, "gradients");
    check_length("adam_", parameters.size(), firsts, "first moments");
    check_length("adam_", parameters.size(), seconds, "second moments");
    check_length("adam_", parameters.size(), steps, "step counts");
    const AdamOptions options{beta1, beta2, eps, weight_decay, decoupled};
    const double *lr = rate.as<double>();
    adam_update(collect<float>(scope.context, "adam_", DType::float32, parameters, grads, firsts, seconds, steps), lr,
                options, scope.stream());
    adam_update(collect<double>(scope.context, "adam_", DType::float64, parameters, grads, firsts, seconds, steps), lr,
                options, scope.stream());
}

} // namespace

void bind_optim(nb::module_ &m) {
    m.def("sgd_", &sgd_, "parameters"_a, "grads"_a, "velocities"_a, "steps"_a, "rate"_a, "momentum"_a, "dampening"_a,
          "weight_decay"_a, "nesterov"_a);
    m.def("adam_", &adam_, "parameters"_a, "grads"_a, "firsts"_a, "seconds"_a, "steps"_a, "rate"_a, "beta1"_a,
          "beta2"_a, "eps"_a, "weight_decay"_a, "decoupled"_a);
}

} // namespace gradcuda
