// Three ways lead to a sum. A function of values has a program, on any back end. A loss of Holdfast's own has a kernel
// on devices. All others compute on the host: for a device, arrays are copied there and back.
//
// On the host a loss computes all rows of a shard at once, unless they have weights: then it computes them one after
// another, so that any loss, also one of an application, can be weighted. What has weight 0 is not computed at all,
// since what is masked may hold anything. See docs/decisions/sample-weights.md.

#include "train/step/outputs/output_sums.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "compute/cpu/cpu_array_kernels.h"
#include "core/sample_error.h"
#include "holdfast/base/error.h"
#include "holdfast/base/log.h"

namespace holdfast {
namespace {

using Rows = SummedRows;

// How many samples there are, and how many weights each of them has.
struct Counts {
  std::int64_t samples = 0;
  std::int64_t weights_each = 1;
};

// `position_axes` is 0 where a loss takes a whole group as one row.
Rows rows_of(const OutputEvaluation& evaluation, Counts counts, std::size_t output, std::size_t position_axes) {
  const auto samples = static_cast<std::size_t>(counts.samples);
  const std::size_t groups = samples * static_cast<std::size_t>(counts.weights_each);
  std::size_t rows = groups;
  if (position_axes > 0) {
    rows = samples;
    const auto& extents = evaluation.outputs()[output].spec.shape.extents();
    for (std::size_t axis = 0; axis < position_axes; ++axis) rows *= static_cast<std::size_t>(extents[axis]);
  }
  return {.groups = groups,
          .each = rows / groups,
          .output_elements = samples * evaluation.elements(output) / rows,
          .target_elements = samples * evaluation.target_elements(output) / rows};
}

// Arrays in the memory of the host.
struct HostArrays {
  std::span<const float> outputs;
  std::span<const float> targets;
  const float* weights = nullptr;  // null: none
  std::span<float> gradient{};     // empty where none is wanted
};

// `value_of(outputs, targets, rows, weight, gradient)` is the sum of a loss or metric over some rows. The sum over
// groups is in double, as there may be many.
template <class ValueOf>
float sum_on_host(const Rows& rows, const HostArrays& arrays, const ValueOf& value_of) {
  const auto each = static_cast<float>(rows.each);
  // A division by 1 changes no bit.
  if (arrays.weights == nullptr) {
    return value_of(arrays.outputs, arrays.targets, rows.count(), 1.0F, arrays.gradient) / each;
  }
  // Groups of weight 0 are not computed, so nothing else writes their gradients.
  std::ranges::fill(arrays.gradient, 0.0F);
  const std::size_t width = rows.each * rows.output_elements;
  const std::size_t target_width = rows.each * rows.target_elements;
  double sum = 0;
  for (std::size_t group = 0; group < rows.groups; ++group) {
    const float weight = arrays.weights[group];
    // Not a product with 0: what is masked may be NaN, and so would be the product.
    if (weight == 0) continue;
    const std::span<float> gradient =
        arrays.gradient.empty() ? arrays.gradient : arrays.gradient.subspan(group * width, width);
    float value = 0;
    try {
      value = value_of(arrays.outputs.subspan(group * width, width),
                       arrays.targets.subspan(group * target_width, target_width), static_cast<std::int64_t>(rows.each),
                       weight, gradient) /
              each;
    } catch (const SampleError& error) {
      // A loss that gets one group at a time counts its rows from 0.
      const std::int64_t row = static_cast<std::int64_t>(group * rows.each) + error.sample();
      throw error.renamed(fmt::format("sample {} of {}", row, rows.count()), row);
    } catch (const Error& error) {
      throw Error(error.code(),
                  fmt::format("row {} of {} of a shard with weights: {}", group, rows.groups, error.what()));
    }
    sum += static_cast<double>(weight) * static_cast<double>(value);
  }
  return static_cast<float>(sum);
}

float loss_on_host(const Loss& loss, const Rows& rows, const HostArrays& arrays, float scale) {
  const auto each = static_cast<float>(rows.each);
  return sum_on_host(rows, arrays, [&](auto outputs, auto targets, std::int64_t count, float weight, auto gradient) {
    return loss.evaluate(outputs, targets, count, scale * weight / each, gradient);
  });
}

float metric_on_host(const Metric& metric, const Rows& rows, const HostArrays& arrays) {
  return sum_on_host(rows, arrays, [&](auto outputs, auto targets, std::int64_t count, float, std::span<float>) {
    return metric.sum(outputs, targets, count);
  });
}

// A shard's arrays of one output, seen from the host: the arrays themselves, or copies of what lies on a device.
class SeenFromHost {
 public:
  // Arrays in the memory of the back end; null: no weights, no gradient wanted.
  struct Given {
    const float* outputs;
    const float* targets;
    const float* weights;
    float* gradient;
  };

  SeenFromHost(MemorySpace& memory, const Rows& rows, const Given& given) : memory_(memory) {
    const std::size_t count = rows.groups * rows.each;
    arrays_.outputs = seen({given.outputs, count * rows.output_elements}, outputs_);
    arrays_.targets = seen({given.targets, count * rows.target_elements}, targets_);
    if (given.weights != nullptr) arrays_.weights = seen({given.weights, rows.groups}, weights_).data();
    if (given.gradient == nullptr) return;
    device_gradient_ = {given.gradient, count * rows.output_elements};
    if (!memory.is_host()) gradient_.resize(device_gradient_.size());
    arrays_.gradient = memory.is_host() ? device_gradient_ : std::span<float>(gradient_);
  }

  const HostArrays& arrays() const { return arrays_; }

  // Gives what the host has computed to the back end.
  void hand_over(float value, float* sum) const {
    memory_.copy_from_host({&value, 1}, {sum, 1});
    if (!gradient_.empty()) memory_.copy_from_host(gradient_, device_gradient_);
  }

 private:
  std::span<const float> seen(std::span<const float> array, std::vector<float>& copy) const {
    if (memory_.is_host()) return array;
    copy.resize(array.size());
    memory_.copy_to_host(array, copy);
    return copy;
  }

  MemorySpace& memory_;
  HostArrays arrays_;
  std::vector<float> outputs_, targets_, weights_, gradient_;
  std::span<float> device_gradient_;
};

template <class Shape>
void set_rows(const Rows& rows, Shape& shape) {
  shape.rows = rows.count();
  shape.outputs = static_cast<std::int64_t>(rows.output_elements);
  shape.rows_each = static_cast<std::int64_t>(rows.each);
}

}  // namespace

SampleError with_position(const SampleError& error, std::int64_t rows, std::int64_t samples) {
  const std::int64_t each = rows / samples;
  return each == 1 ? error : error.at_position(error.sample() % each, error.sample() / each, samples);
}

void OutputSums::repeat(std::span<const std::uint64_t> key, const Parts& parts,
                        const std::function<void(std::size_t part)>& after_part) {
  // Copies to the host and divisors that change cannot be part of a recording. They are queued anew in each step.
  const bool is_recorded = !weighting_.has_own_divisors && evaluation_.without_device_code().empty();
  if (backend_.device_kernels() == nullptr || is_recorded) {
    return backend_.repeat(key, parts, after_part);
  }
  for (std::size_t part = 0; part < parts.size(); ++part) {
    parts[part]();
    after_part(part);
  }
}

// Data sets of one Trainer may have weights of different shapes. Programs for each are made once and kept.
OutputSums::Programs& OutputSums::programs_for(const std::vector<Shape>& weights) {
  for (const auto& made : made_) {
    if (made->weights == weights) return *made;
  }
  const auto shape_of = [&](std::size_t output) {
    return weights.empty() ? std::nullopt : std::optional(weights[output]);
  };
  auto programs = std::make_unique<Programs>(Programs{.weights = weights, .losses = {}, .metrics = {}});
  const auto add = [&](std::optional<SumsGraph> graph, std::vector<std::unique_ptr<ValueProgram>>& list) {
    list.push_back(graph ? std::make_unique<ValueProgram>(std::move(*graph), backend_) : nullptr);
  };
  for (std::size_t output = 0; output < evaluation_.outputs().size(); ++output) {
    add(evaluation_.graph_of_output_loss(output, shape_of(output)), programs->losses);
  }
  for (std::size_t index = 0; index < evaluation_.metrics().size(); ++index) {
    add(evaluation_.graph_of_metric(index, shape_of(evaluation_.metrics()[index].output)), programs->metrics);
  }
  // Held by pointers, since prepared_ points to one of them while others are made.
  made_.push_back(std::move(programs));
  return *made_.back();
}

std::int64_t OutputSums::weights_of_sample(std::size_t output) const {
  return weighting_.weights.empty() ? 1 : weighting_.weights[output].element_count();
}

float OutputSums::scale_of(std::size_t output) const {
  return weighting_.scales[output] * evaluation_.loss(output).weight();
}

void OutputSums::prepare(std::int64_t samples, const Weighting& weighting, std::vector<std::uint64_t>& key) {
  weighting_ = weighting;
  // Weights are a further array, so other work is queued with them. With divisors of their own nothing is recorded.
  key.push_back(weighting.weights.empty() ? 0 : static_cast<std::uint64_t>(weights_of_sample(0)));
  prepared_ = &programs_for(weighting.weights);
  for (std::size_t output = 0; output < prepared_->losses.size(); ++output) {
    ValueProgram* const program = prepared_->losses[output].get();
    // The scale is a number in device memory, since a recording keeps its arguments.
    if (program != nullptr) program->prepare(samples, scale_of(output), key);
  }
  for (const auto& program : prepared_->metrics) {
    if (program) program->prepare(samples, 1, key);
  }
}

void OutputSums::run_loss(const Shard& shard, std::size_t output, float* sum) {
  float* const gradient = shard.gradients.empty() ? nullptr : shard.gradients[output];
  if (ValueProgram* const program = prepared_->losses[output].get()) {
    return program->run({.outputs = shard.outputs[output],
                         .targets = shard.targets[output],
                         .weights = shard.weights_of(output),
                         .gradient = gradient,
                         .sums = sum});
  }
  const Rows rows = rows_of(evaluation_, {.samples = shard.samples, .weights_each = weights_of_sample(output)}, output,
                            evaluation_.loss(output).get()->position_axes(evaluation_.outputs()[output].spec.shape));
  try {
    compute_loss(output, rows,
                 {.outputs = shard.outputs[output],
                  .targets = shard.targets[output],
                  .weights = shard.weights_of(output),
                  .gradient = gradient},
                 scale_of(output), sum);
  } catch (const SampleError& error) {
    throw with_position(error, rows.count(), shard.samples);
  }
}

void OutputSums::compute_loss(std::size_t output, const Rows& rows, const Arrays& arrays, float scale, float* sum) {
  const Loss& loss = *evaluation_.loss(output).get();
  compute::LossShape kernel;
  compute::DeviceKernels* const device = backend_.device_kernels();
  if (device != nullptr && loss.describe_kernel(kernel)) {
    set_rows(rows, kernel);
    // Errors name a row of the shard, and a tile begins somewhere in it.
    kernel.first_row = rows.first;
    return device->loss(kernel, {arrays.outputs, arrays.targets, arrays.weights}, scale, arrays.gradient, sum);
  }
  const SeenFromHost seen(backend_.memory(), rows, {arrays.outputs, arrays.targets, arrays.weights, arrays.gradient});
  seen.hand_over(loss_on_host(loss, rows, seen.arrays(), scale), sum);
}

void OutputSums::check_labels(std::int64_t samples) {
  try {
    backend_.device_kernels()->check();
  } catch (const SampleError& error) {
    // The device does not say of which output the row is. If outputs have other rows, the sample is not known.
    std::optional<Rows> found;
    for (std::size_t output = 0; output < evaluation_.outputs().size(); ++output) {
      compute::LossShape kernel;
      const Loss& loss = *evaluation_.loss(output).get();
      if (!loss.describe_kernel(kernel) || !compute::checks_targets(kernel.kind)) continue;
      const std::size_t axes = loss.position_axes(evaluation_.outputs()[output].spec.shape);
      const Rows rows = rows_of(evaluation_, {.samples = samples}, output, axes);
      if (found && found->count() != rows.count()) {
        const std::string name = fmt::format("row {} of the targets of some output", error.sample());
        throw Error(error.code(), error.renamed(name, error.sample()).what());
      }
      found = rows;
    }
    HOLDFAST_ASSERT(found.has_value());
    throw with_position(error, found->count(), samples);
  }
}

// A metric that ignores weights sees all samples, also those that are masked.
void OutputSums::run_metric(const Shard& shard, std::size_t index, float* sums) {
  const OutputEvaluation::OutputMetric& metric = evaluation_.metrics()[index];
  const float* const weights = metric.ignores_weights ? nullptr : shard.weights_of(metric.output);
  if (ValueProgram* const program = prepared_->metrics[index].get()) {
    return program->run({.outputs = shard.outputs[metric.output],
                         .targets = shard.targets[metric.output],
                         .weights = weights,
                         .sums = sums});
  }
  const Counts counts = {.samples = shard.samples,
                         .weights_each = weights == nullptr ? 1 : weights_of_sample(metric.output)};
  const Rows rows = rows_of(evaluation_, counts, metric.output,
                            metric.metric->position_axes(evaluation_.outputs()[metric.output].spec.shape));
  compute_metric(index, rows,
                 {.outputs = shard.outputs[metric.output], .targets = shard.targets[metric.output], .weights = weights},
                 sums);
}

void OutputSums::compute_metric(std::size_t index, const Rows& rows, const Arrays& arrays, float* sum) {
  const Metric& metric = *evaluation_.metrics()[index].metric;
  compute::MetricShape kernel;
  compute::DeviceKernels* const device = backend_.device_kernels();
  if (device != nullptr && metric.describe_kernel(kernel)) {
    set_rows(rows, kernel);
    return device->metric(kernel, {arrays.outputs, arrays.targets, arrays.weights}, sum);
  }
  const SeenFromHost seen(backend_.memory(), rows, {arrays.outputs, arrays.targets, arrays.weights, nullptr});
  seen.hand_over(metric_on_host(metric, rows, seen.arrays()), sum);
}

// The divisor of the whole batch is the sum over all shards, so each shard adds its own.
void OutputSums::sum_weights(const Shard& shard, float* sum) {
  // All outputs have the same weights here; those with weights of their own have divisors of their own.
  const std::int64_t count = shard.samples * weights_of_sample(0);
  const float* const weights = shard.weights.front();
  // On a device the sum stays there, since nothing of a step waits for the host.
  if (backend_.device_kernels() != nullptr) {
    return backend_.array_kernels().reduce({.kind = compute::ReductionKind::sum, .reduced = count}, weights, sum);
  }
  double weight = 0;
  for (std::int64_t group = 0; group < count; ++group) weight += static_cast<double>(weights[group]);
  *sum = static_cast<float>(weight);
}

void OutputSums::run(const Shard& shard, float* sums) {
  for (std::size_t output = 0; output < evaluation_.outputs().size(); ++output) {
    run_loss(shard, output, sums + evaluation_.loss_place(output));
  }
  float* next = sums + evaluation_.first_metric();
  for (std::size_t index = 0; index < evaluation_.metrics().size(); ++index) {
    run_metric(shard, index, next);
    next += evaluation_.metrics()[index].places();
  }
  if (!shard.weights.empty() && !weighting_.has_own_divisors) sum_weights(shard, next);
}

void divide(compute::Backend& backend, std::span<const float> numbers, float divisor, std::span<float> quotients,
            const ArrayPasses& passes) {
  compute::ElementProgram program;
  program.instruction_count = program.input_count = program.constant_count = program.output_count = 1;
  program.instructions[0].function = compute::ElementFunction::divide;
  program.instructions[0].operands[1] = {.kind = compute::ElementOperand::Kind::constant};
  program.constants[0] = divisor;
  const auto divide_range = [&](std::size_t begin, std::size_t end) {
    compute::ElementShape shape;
    shape.extents[0] = static_cast<std::int64_t>(end - begin);
    shape.strides[0][0] = 1;
    const float* const from = numbers.data() + begin;
    float* const to = quotients.data() + begin;
    // Threads have kernels of their own. On a device there is one queue.
    compute::CpuArrayKernels host;
    compute::ArrayKernels& kernels = backend.memory().is_host() ? host : backend.array_kernels();
    kernels.elements(program, shape, {&from, 1}, {&to, 1});
  };
  // The work of a device is not shared.
  if (!backend.memory().is_host()) return divide_range(0, numbers.size());
  passes(numbers.size(), 2, std::ref(divide_range));
}

void log_host_computations(const OutputEvaluation& evaluation, const std::string& device) {
  const std::vector<std::string> names = evaluation.without_device_code();
  if (names.empty()) return;
  log(LogLevel::warning,
      fmt::format("the host computes {} for {}, so steps wait for copies of outputs and gradients; a loss or metric of "
                  "values (value_loss.h, value_metric.h) computes on the device",
                  fmt::join(names, " and "), device));
}

}  // namespace holdfast
