// A custom operation is an operation whose functions the application has written. So what it returns is checked like
// input: shapes and gradients when a model is made, and once, at the first pass, that every element was written. An
// element without a value would have other bits in each run, and no later check could tell. docs/decisions/models.md

#include "holdfast/nn/custom_operation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "compute/aligned_floats.h"
#include "holdfast/base/error.h"
#include "nn/graph/operation.h"
#include "nn/operations/elements.h"

namespace holdfast {

namespace {

// Written to outputs before the first pass. As floats they are signalling NaNs. Arithmetic gives quiet ones, so it
// gives neither of these. An integer may have the value of one of them, but an operation that gives the same result
// each time does not give both.
constexpr std::uint32_t kUnwritten = 0x7FA5C3E1;
constexpr std::uint32_t kStillUnwritten = 0x7FA3E5C1;
// More than a machine has, and little enough that sizes in bytes do not overflow 64 bits.
constexpr std::size_t kMostScratchBytes = std::size_t{1} << 48;
constexpr std::int64_t kMostElements = std::int64_t{1} << 40;

template <class Element, class Byte>
std::span<Element> elements_of(Byte* data, const ValueSpec& spec, std::size_t count, DType wanted) {
  if (spec.dtype == wanted) return {reinterpret_cast<Element*>(data), count};
  throw Error(ErrorCode::invalid_argument,
              fmt::format("an array of {} is used as one of {}", holdfast::name(spec.dtype), holdfast::name(wanted)));
}

// Calls a function of the application. Its exceptions become errors that name the operation, since the sentence of the
// application need not say where it comes from. Only an Error has a code that says more.
template <class Function>
auto call_named(const CustomOperation& operation, const Function& function) {
  try {
    return function();
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("operation \"{}\": {}", operation.name(), error.what()));
  } catch (const std::exception& error) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("operation \"{}\" failed: {}", operation.name(), error.what()));
  }
}

[[noreturn]] void refuse(const CustomOperation& operation, const std::string& what) {
  throw Error(ErrorCode::invalid_argument, fmt::format("operation \"{}\": {}", operation.name(), what));
}

// apply_custom() takes values, so none of these is missing.
std::vector<ValueSpec> present(std::span<const std::optional<ValueSpec>> specs) {
  std::vector<ValueSpec> all;
  for (const std::optional<ValueSpec>& spec : specs) all.push_back(*spec);
  return all;
}

std::size_t scratch_bytes_of(const CustomOperation& operation, std::span<const ValueSpec> inputs,
                             std::int64_t samples) {
  const std::size_t bytes = call_named(operation, [&] { return operation.scratch_bytes(inputs, samples); });
  // A negative number that became unsigned is larger than any memory.
  if (bytes > kMostScratchBytes)
    refuse(operation, fmt::format("scratch_bytes() gives {}, which no machine has", bytes));
  return bytes;
}

// One more, for bytes that do not fill a float.
std::size_t floats_for(std::size_t bytes) {
  return bytes / sizeof(float) + 1;
}

std::size_t element_count(const ValueSpec& spec, std::int64_t samples) {
  return static_cast<std::size_t>((spec.has_samples ? samples : 1) * spec.shape.element_count());
}

void add_arrays(const KernelArrays& arrays, const std::vector<ValueSpec>& input_specs,
                const std::vector<ValueSpec>& output_specs, std::int64_t samples, std::vector<InputArray>& inputs,
                std::vector<OutputArray>& outputs) {
  for (std::size_t i = 0; i < input_specs.size(); ++i) {
    inputs.emplace_back(arrays.inputs()[i], input_specs[i], element_count(input_specs[i], samples));
  }
  for (std::size_t i = 0; i < output_specs.size(); ++i) {
    outputs.emplace_back(arrays.outputs()[i], output_specs[i], element_count(output_specs[i], samples));
  }
}

class CustomKernel final : public Kernel {
 public:
  CustomKernel(std::shared_ptr<const CustomOperation> operation, const KernelMaker& maker)
      : operation_(std::move(operation)),
        samples_(maker.samples),
        input_specs_(present(maker.inputs)),
        output_specs_(present(maker.outputs)),
        scratch_bytes_(scratch_bytes_of(*operation_, input_specs_, samples_)) {
    // All memory is taken here: a pass must not allocate (graph/kernel.h).
    scratch_.grow_to(floats_for(scratch_bytes_));
    inputs_.reserve(input_specs_.size());
    outputs_.reserve(output_specs_.size());
  }

  void run(const KernelArrays& arrays) override {
    // The lists keep their memory from pass to pass.
    inputs_.clear();
    outputs_.clear();
    add_arrays(arrays, input_specs_, output_specs_, samples_, inputs_, outputs_);
    if (!is_checked_) mark_outputs(arrays, kUnwritten);
    call_operation();
    // Only a suspicion, since an integer may have this value. An element that run() writes loses the other mark, too.
    if (!is_checked_ && !find_marks(arrays, kUnwritten).empty()) {
      mark_outputs(arrays, kStillUnwritten);
      call_operation();
      const std::string unwritten = find_marks(arrays, kStillUnwritten);
      if (!unwritten.empty()) refuse(*operation_, unwritten);
    }
    is_checked_ = true;
  }

  std::size_t own_bytes() const override { return scratch_bytes_; }

 private:
  void call_operation() {
    call_named(*operation_, [&] {
      operation_->run({.samples = samples_,
                       .inputs = inputs_,
                       .outputs = outputs_,
                       .scratch = {reinterpret_cast<std::byte*>(scratch_.data()), scratch_bytes_}});
    });
  }

  void mark_outputs(const KernelArrays& arrays, std::uint32_t mark) const {
    for (std::size_t output = 0; output < output_specs_.size(); ++output) {
      const std::size_t count = element_count(output_specs_[output], samples_);
      // Copied byte by byte: an element is a float or an integer, and a signalling NaN must stay one.
      for (std::size_t i = 0; i < count; ++i) {
        std::memcpy(arrays.outputs()[output] + i * sizeof(mark), &mark, sizeof(mark));
      }
    }
  }

  // Says which elements hold the mark; empty if none does.
  std::string find_marks(const KernelArrays& arrays, std::uint32_t mark) const {
    for (std::size_t output = 0; output < output_specs_.size(); ++output) {
      const std::size_t count = element_count(output_specs_[output], samples_);
      std::size_t unwritten = 0, first = 0;
      // From the end, so that the last one found is the first.
      for (std::size_t i = count; i-- > 0;) {
        if (std::memcmp(arrays.outputs()[output] + i * sizeof(mark), &mark, sizeof(mark)) != 0) continue;
        ++unwritten;
        first = i;
      }
      if (unwritten == 0) continue;
      return fmt::format(
          "run() left {} of the {} elements of output {} unwritten, the first of them element {}; it "
          "must write all of them",
          unwritten, count, output, first);
    }
    return {};
  }

  const std::shared_ptr<const CustomOperation> operation_;
  const std::int64_t samples_;
  const std::vector<ValueSpec> input_specs_;
  const std::vector<ValueSpec> output_specs_;
  const std::size_t scratch_bytes_;
  compute::AlignedFloats scratch_;
  std::vector<InputArray> inputs_;
  std::vector<OutputArray> outputs_;
  bool is_checked_ = false;
};

// Queues the function of an application on a device. What is written is not checked there: that would take a wait.
class CustomDeviceKernel final : public Kernel {
 public:
  CustomDeviceKernel(std::shared_ptr<const CustomOperation> operation, const KernelMaker& maker)
      : operation_(std::move(operation)),
        backend_(maker.backend),
        samples_(maker.samples),
        input_specs_(present(maker.inputs)),
        output_specs_(present(maker.outputs)),
        scratch_bytes_(scratch_bytes_of(*operation_, input_specs_, samples_)) {
    // Memory of the device, so own_bytes() does not count it.
    if (scratch_bytes_ > 0) scratch_ = backend_.memory().allocate(floats_for(scratch_bytes_));
  }

  void run(const KernelArrays& arrays) override {
    // The lists belong to the call: the back end may keep it, and a kernel may run several times in one pass. So no
    // call changes what another one still reads.
    std::vector<InputArray> inputs;
    std::vector<OutputArray> outputs;
    add_arrays(arrays, input_specs_, output_specs_, samples_, inputs, outputs);
    backend_.queue_on_stream([this, inputs, outputs](void* stream) {
      call_named(*operation_, [&] {
        operation_->queue_on_device({.samples = samples_,
                                     .inputs = inputs,
                                     .outputs = outputs,
                                     .scratch = {reinterpret_cast<std::byte*>(scratch_.get()), scratch_bytes_}},
                                    stream);
      });
    });
  }

 private:
  const std::shared_ptr<const CustomOperation> operation_;
  compute::Backend& backend_;
  const std::int64_t samples_;
  const std::vector<ValueSpec> input_specs_;
  const std::vector<ValueSpec> output_specs_;
  const std::size_t scratch_bytes_;
  std::shared_ptr<float[]> scratch_;
};

class CustomNode final : public Operation {
 public:
  explicit CustomNode(std::shared_ptr<const CustomOperation> custom) : custom_(std::move(custom)) {}

  std::string name() const override { return custom_->name(); }
  // infer() refuses a number of inputs that does not fit.
  bool takes_inputs(std::size_t) const override { return true; }
  // infer() refuses types that the operation does not take.
  bool takes_integers() const override { return true; }

  std::vector<ValueSpec> outputs(std::span<const std::optional<ValueSpec>> inputs) const override {
    const std::vector<ValueSpec> given = present(inputs);
    std::vector<ValueSpec> specs = call_named(*custom_, [&] { return custom_->infer(given); });
    if (specs.empty()) refuse(*custom_, "infer() returned no output; an operation has at least one");
    // infer() describes one sample and need not say this. An output of samples without samples would mix them.
    const bool has_samples = std::any_of(given.begin(), given.end(), [](const auto& spec) { return spec.has_samples; });
    for (ValueSpec& spec : specs) {
      spec.has_samples = has_samples;
      if (spec.dtype != DType::f32 && spec.dtype != DType::i32) {
        refuse(*custom_,
               fmt::format("infer() returned an output of {}; a model has f32 and i32", holdfast::name(spec.dtype)));
      }
      if (spec.shape.element_count() < 1 || spec.shape.element_count() > kMostElements) {
        refuse(*custom_,
               fmt::format("infer() returned an output {}; it needs 1 to 2^40 elements", spec.shape.to_string()));
      }
    }
    return specs;
  }

  std::vector<MaybeValue> gradient(const GradientRequest& request) const override {
    std::vector<Value> inputs;
    for (const MaybeValue& input : request.inputs) inputs.push_back(*input);
    std::vector<MaybeValue> gradients = call_named(*custom_, [&] {
      return custom_->gradient({.inputs = inputs,
                                .outputs = request.outputs,
                                .output_gradients = request.output_gradients,
                                .needed = request.needed});
    });
    if (gradients.size() != inputs.size()) {
      refuse(*custom_, fmt::format("gradient() returned {} gradients for {} inputs; return one for each, which may be "
                                   "missing",
                                   gradients.size(), inputs.size()));
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (gradients[i] && request.needed[i]) gradients[i] = checked_gradient(*gradients[i], inputs[i], i);
    }
    return gradients;
  }

  std::unique_ptr<Kernel> make_kernel(const KernelMaker& maker) const override {
    // Known when a plan is made, before any sample is read.
    if (maker.backend.memory().is_host()) return std::make_unique<CustomKernel>(custom_, maker);
    if (custom_->runs_on_devices()) return std::make_unique<CustomDeviceKernel>(custom_, maker);
    throw Error(ErrorCode::unsupported,
                fmt::format("operation \"{}\" runs on the host, and the model runs on {}; train on CPUs, or give the "
                            "operation a queue_on_device()",
                            custom_->name(), maker.backend.memory().device()));
  }

 private:
  Value checked_gradient(const Value& gradient, const Value& input, std::size_t index) const {
    // A weight may get the gradients of all samples, which are added; a value of samples needs one for each.
    const bool fits = gradient.shape() == input.shape() && gradient.dtype() == input.dtype() &&
                      (gradient.has_samples() || !input.has_samples());
    if (fits) return sum_to(gradient, input.spec());
    refuse(*custom_, fmt::format("gradient() returned {} of {}{} for input {}, which is {} of {}{}",
                                 gradient.shape().to_string(), holdfast::name(gradient.dtype()),
                                 gradient.has_samples() ? "" : " without samples", index, input.shape().to_string(),
                                 holdfast::name(input.dtype()), input.has_samples() ? "" : " without samples"));
  }

  const std::shared_ptr<const CustomOperation> custom_;
};

}  // namespace

std::span<const float> InputArray::floats() const {
  return elements_of<const float>(data_, *spec_, elements_, DType::f32);
}

std::span<const std::int32_t> InputArray::integers() const {
  return elements_of<const std::int32_t>(data_, *spec_, elements_, DType::i32);
}

std::span<float> OutputArray::floats() const {
  return elements_of<float>(data_, *spec_, elements_, DType::f32);
}

std::span<std::int32_t> OutputArray::integers() const {
  return elements_of<std::int32_t>(data_, *spec_, elements_, DType::i32);
}

std::size_t CustomOperation::scratch_bytes(std::span<const ValueSpec>, std::int64_t) const {
  return 0;
}

bool CustomOperation::runs_on_devices() const {
  return false;
}

void CustomOperation::queue_on_device(const OperationArrays&, void*) const {
  throw Error(ErrorCode::unsupported, "it says that it runs on devices, but it has no queue_on_device()");
}

std::vector<std::optional<Value>> CustomOperation::gradient(const OperationGradient&) const {
  throw Error(ErrorCode::unsupported,
              "it has no gradient, but a parameter before it is trained; override gradient(), or apply it to "
              "stop_gradient() of its inputs");
}

std::vector<Value> apply_custom(std::shared_ptr<const CustomOperation> operation, const std::vector<Value>& inputs) {
  if (operation == nullptr) throw Error(ErrorCode::invalid_argument, "apply_custom() needs an operation, not a null");
  return apply(std::make_shared<const CustomNode>(std::move(operation)), {inputs.begin(), inputs.end()});
}

}  // namespace holdfast
