// Besides its kernel, a step costs two additions an array and one virtual call. It allocates nothing, because steps of
// small models are counted in microseconds. The plan keeps places and kernels, and drops the graph that they were made
// from. Addresses come with each pass, because arenas and the caller's arrays may move between passes.
// docs/decisions/models.md

#include "nn/plan/model_plan.h"

#include <algorithm>
#include <numeric>

#include "nn/plan/fusion.h"

namespace holdfast {

static constexpr std::size_t kMissing = std::numeric_limits<std::size_t>::max();  // a base

ModelPlan::ModelPlan(const Graph& described, const MemoryOptions& options, compute::Backend& backend, bool is_training)
    : samples_(options.samples), is_training_(is_training), parameter_floats_(options.parameters.float_count()) {
  const Graph graph = options.fuses_elements ? fuse_elements(described) : described;
  const MemoryPlan memory = plan_memory(graph, options);
  arena_bytes_ = memory.arena_bytes;
  for (const ArrayId output : graph.outputs) outputs_.push_back(memory.places[output]);

  // Kernels hold what they share by pointers of their own, so this list is needed only while they are made.
  SharedObjects shared;
  Kernels kernels(graph.operations.size());
  std::vector<std::size_t> step_of_operation;
  for (std::size_t index = 0; index < graph.operations.size(); ++index) {
    if (index == graph.first_backward) first_backward_ = steps_.size();
    // A view has no step. Its number is that of the next step, by which its array is complete.
    step_of_operation.push_back(steps_.size());
    if (!graph.operations[index].operation->is_view()) {
      add_step(graph, graph.operations[index], memory, backend, shared, kernels);
      kernels[index] = steps_.back().kernel;
    }
  }
  // A graph for inference has no backward pass, so the loop never meets its first operation.
  if (graph.first_backward == graph.operations.size()) first_backward_ = steps_.size();
  if (is_training) find_complete_gradients(graph, options.parameters, step_of_operation);
}

void ModelPlan::add_step(const Graph& graph, const GraphOperation& operation, const MemoryPlan& memory,
                         compute::Backend& backend, SharedObjects& shared, const Kernels& kernels) {
  Step step = {.kernel = nullptr,
               .first_place = places_.size(),
               .inputs = operation.inputs.size(),
               .outputs = operation.outputs.size()};
  const auto specs_of = [&](const std::vector<ArrayId>& arrays) {
    std::vector<std::optional<ValueSpec>> specs;
    for (const ArrayId array : arrays) {
      specs.push_back(array == kNoArray ? std::nullopt : std::optional(graph.spec(array)));
      places_.push_back(array == kNoArray ? ArrayPlace{.base = kMissing} : memory.places[array]);
    }
    return specs;
  };
  // places_ lists the inputs of a step before its outputs, so these two calls must stay in this order.
  const auto inputs = specs_of(operation.inputs);
  const auto outputs = specs_of(operation.outputs);
  // A copy runs the kernel of its original. The backward pass was made with the objects of that kernel, and finds there
  // what the second run keeps. docs/decisions/models.md
  if (operation.repeats != kNoOperation) {
    step.kernel = kernels[operation.repeats];
  } else {
    step.kernel = operation.operation->make_kernel(
        {.backend = backend,
         .samples = samples_,
         .use = {.training = is_training_, .input_gradient = operation.has_input_gradient},
         .inputs = inputs,
         .outputs = outputs,
         .shared = shared});
  }
  // A pass must not allocate, so the longest list of pointers is made here.
  pointers_.resize(std::max(pointers_.size(), step.inputs + step.outputs));
  steps_.push_back(std::move(step));
}

void ModelPlan::find_complete_gradients(const Graph& graph, const ArenaLayout& parameters,
                                        const std::vector<std::size_t>& step_of_operation) {
  // The step that makes the gradient of each parameter. One without a gradient is complete from the start.
  std::vector<std::size_t> steps;
  for (const ArrayId gradient : graph.parameter_gradients) {
    const std::size_t maker = gradient == kNoArray ? 0 : graph.arrays[graph.memory_of(gradient)].index;
    steps.push_back(gradient == kNoArray ? 0 : step_of_operation[maker]);
  }
  // The backward pass makes the gradients of the last layers first, so a part is a range at the end of the arena. An
  // entry counts only when all entries after it are complete.
  std::size_t incomplete = steps.size();  // entries before this one
  for (std::size_t step = first_backward_; step < steps_.size(); ++step) {
    while (incomplete > 0 && steps[incomplete - 1] <= step) --incomplete;
    const bool is_complete = incomplete == steps.size();
    steps_[step].gradients_begin = is_complete ? parameter_floats_ : parameters.entries()[incomplete].offset;
  }
}

std::size_t ModelPlan::own_bytes_of_kernels() const {
  return std::accumulate(steps_.begin(), steps_.end(), std::size_t{0},
                         [](std::size_t sum, const Step& step) { return sum + step.kernel->own_bytes(); });
}

void ModelPlan::run(std::size_t first, std::size_t end, const Bases& bases, const BeforeOperation& before) {
  for (std::size_t index = first; index < end; ++index) {
    // An exception of before() ends the pass between two operations, so no kernel is left half done.
    before();
    const Step& step = steps_[index];
    const ArrayPlace* place = places_.data() + step.first_place;
    const std::size_t arrays = step.inputs + step.outputs;
    for (std::size_t array = 0; array < arrays; ++array, ++place) {
      pointers_[array] = place->base == kMissing ? nullptr : bases[place->base] + place->offset;
    }
    const std::span<std::byte* const> all(pointers_);
    step.kernel->run({all.first(step.inputs), all.subspan(step.inputs, step.outputs)});
  }
}

void ModelPlan::forward(const Bases& bases, const BeforeOperation& before) {
  run(0, first_backward_, bases, before);
}

const std::byte* ModelPlan::output(std::size_t index, const Bases& bases) const {
  return bases[outputs_[index].base] + outputs_[index].offset;
}

const std::vector<BackwardPart>& ModelPlan::backward_parts(std::size_t least_floats) {
  if (parts_.empty() || parts_least_floats_ != least_floats) {
    parts_ = divide_backward(least_floats);
    parts_least_floats_ = least_floats;
  }
  return parts_;
}

std::vector<BackwardPart> ModelPlan::divide_backward(std::size_t least_floats) const {
  std::vector<BackwardPart> parts;
  std::size_t first = first_backward_;
  std::size_t complete_from = parameter_floats_;  // before this part
  for (std::size_t step = first_backward_; step + 1 < steps_.size(); ++step) {
    // A part that completes few floats would cost a message of its own and save no time.
    const std::size_t begin = steps_[step].gradients_begin;
    // The last part is the one with the first parameters.
    if (begin == 0 || complete_from - begin < std::max<std::size_t>(least_floats, 1)) continue;
    parts.push_back({.first = first, .end = step + 1, .gradients_begin = begin});
    first = step + 1;
    complete_from = begin;
  }
  parts.push_back({.first = first, .end = steps_.size(), .gradients_begin = 0});
  return parts;
}

void ModelPlan::backward(const BackwardPart& part, const Bases& bases, const BeforeOperation& before) {
  run(part.first, part.end, bases, before);
}

}  // namespace holdfast
