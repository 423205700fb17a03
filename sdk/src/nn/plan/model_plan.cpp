// Besides its kernel, a step costs a product and some additions an array, and one virtual call. It allocates nothing,
// because steps of small models are counted in microseconds. The plan keeps places and kernels, and drops the graph
// that they were made from. Addresses come with each pass, because arenas and the caller's arrays may move between
// passes. docs/decisions/plans.md

#include "nn/plan/model_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "nn/plan/fusion.h"
#include "nn/plan/row_fusion.h"

namespace holdfast {

static constexpr std::size_t kMissing = std::numeric_limits<std::size_t>::max();  // a base

// The parameter that the operation reads, or whose gradient it computes, says of which layer it is.
static std::string name_of(const GraphOperation& operation, const Graph& graph, const ArenaLayout& parameters) {
  const auto named = [&](std::size_t entry) {
    const std::string& name = parameters.entries()[entry].name;
    return fmt::format("{}: {}", name.substr(0, name.rfind('/')), operation.operation->name());
  };
  for (const ArrayId input : operation.inputs) {
    if (input == kNoArray || graph.arrays[input].source != GraphArray::Source::parameter) continue;
    return named(graph.arrays[input].index);
  }
  for (const ArrayId output : operation.outputs) {
    const auto found = std::ranges::find(graph.parameter_gradients, output);
    if (output == kNoArray || found == graph.parameter_gradients.end()) continue;
    return named(static_cast<std::size_t>(found - graph.parameter_gradients.begin()));
  }
  return operation.operation->name();
}

ModelPlan::ModelPlan(const Graph& described, const MemoryOptions& options, compute::Backend& backend, bool is_training)
    : samples_(options.samples), is_training_(is_training), parameter_floats_(options.parameters.float_count()) {
  // A device has neither such caches nor the time to start more kernels.
  const bool is_host = backend.device_kernels() == nullptr;
  Graph graph = is_host && options.least_row > 0 ? fuse_rows(described, options.least_row) : described;
  if (options.fuses_elements) graph = fuse_elements(graph);
  const SampleTiles tiles = find_sample_tiles(graph, samples_, is_host ? options.tile_bytes : 0);
  const MemoryPlan memory = plan_memory(graph, options, tiles);
  arena_bytes_ = memory.arena_bytes;
  for (const ArrayId output : graph.outputs) outputs_.push_back(memory.places[output]);

  // Kernels hold what they share by pointers of their own, so this is needed only while they are made.
  Making making{.graph = graph, .tiles = tiles, .memory = memory, .parameters = options.parameters, .backend = backend};
  making.kernels.resize(graph.operations.size());
  std::vector<std::size_t> step_of_operation;
  for (std::size_t index = 0; index < graph.operations.size(); ++index) {
    if (index == graph.first_backward) first_backward_ = steps_.size();
    // A view has no step. Its number is that of the next step, by which its array is complete.
    step_of_operation.push_back(steps_.size());
    if (!graph.operations[index].operation->is_view()) add_step(making, index);
  }
  // A graph for inference has no backward pass, so the loop never meets its first operation.
  if (graph.first_backward == graph.operations.size()) first_backward_ = steps_.size();
  if (is_training) find_complete_gradients(graph, options.parameters, step_of_operation);
}

std::shared_ptr<Kernel> ModelPlan::make_kernel(Making& making, const GraphOperation& operation,
                                               std::int64_t samples) const {
  const auto specs_of = [&](const std::vector<ArrayId>& arrays) {
    std::vector<std::optional<ValueSpec>> specs;
    for (const ArrayId array : arrays) {
      specs.push_back(array == kNoArray ? std::nullopt : std::optional(making.graph.spec(array)));
    }
    return specs;
  };
  return operation.operation->make_kernel(
      {.backend = making.backend,
       .samples = samples,
       .use = {.training = is_training_, .input_gradient = operation.has_input_gradient},
       .inputs = specs_of(operation.inputs),
       .outputs = specs_of(operation.outputs),
       .shared = making.shared});
}

void ModelPlan::add_places(const Making& making, const std::vector<ArrayId>& arrays, std::int64_t tile) {
  for (const ArrayId array : arrays) {
    places_.push_back(array == kNoArray ? ArrayPlace{.base = kMissing} : making.memory.places[array]);
    // What a group alone needs lies at one place for all tiles.
    const bool advances =
        tile > 0 && array != kNoArray && making.graph.spec(array).has_samples && !making.tiles.is_local[array];
    const std::size_t bytes = advances ? static_cast<std::size_t>(making.graph.spec(array).shape.element_count()) *
                                             size_bytes(making.graph.spec(array).dtype)
                                       : 0;
    advances_.push_back(bytes * static_cast<std::size_t>(tile));
  }
}

void ModelPlan::add_step(Making& making, std::size_t index) {
  const GraphOperation& operation = making.graph.operations[index];
  const std::size_t number = making.tiles.group_of[index];
  const std::int64_t tile = number == kNoGroup ? 0 : making.tiles.groups[number].tile;
  Step step = {.kernel = nullptr,
               .name = name_of(operation, making.graph, making.parameters),
               .first_place = places_.size(),
               .inputs = operation.inputs.size(),
               .outputs = operation.outputs.size()};
  // The inputs of a step come before its outputs.
  add_places(making, operation.inputs, tile);
  add_places(making, operation.outputs, tile);
  // A copy runs the kernel of its original. The backward pass was made with the objects of that kernel, and finds there
  // what the second run keeps. docs/decisions/plans.md
  const bool runs_original = operation.repeats != kNoOperation && !operation.operation->is_sample_wise();
  step.kernel =
      runs_original ? making.kernels[operation.repeats] : make_kernel(making, operation, tile == 0 ? samples_ : tile);
  making.kernels[index] = step.kernel;
  if (number != kNoGroup) {
    if (groups_.size() == number) {
      step.group = number;
      groups_.push_back({.first = steps_.size(), .end = steps_.size(), .tile = tile, .names = step.name, .rest = {}});
    } else {
      groups_.back().names += ", " + step.name;
    }
    Group& group = groups_.back();
    group.end = steps_.size() + 1;
    if (samples_ % tile != 0) group.rest.push_back(make_kernel(making, operation, samples_ % tile));
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
  for (std::size_t index = first; index < end;) {
    const Step& step = steps_[index];
    if (step.group != kNoGroup) {
      const Group& group = groups_[step.group];
      run_group(group, bases, before);
      index = group.end;
      continue;
    }
    // An exception of before() ends the pass between two operations, so no kernel is left half done.
    before(step.name);
    run_step(step, *step.kernel, bases, 0);
    ++index;
  }
}

void ModelPlan::run_group(const Group& group, const Bases& bases, const BeforeOperation& before) {
  const auto whole = static_cast<std::size_t>(samples_ / group.tile);
  for (std::size_t tile = 0; tile < whole; ++tile) {
    before(group.names);
    for (std::size_t index = group.first; index < group.end; ++index) {
      run_step(steps_[index], *steps_[index].kernel, bases, tile);
    }
  }
  if (group.rest.empty()) return;
  before(group.names);
  for (std::size_t index = group.first; index < group.end; ++index) {
    run_step(steps_[index], *group.rest[index - group.first], bases, whole);
  }
}

void ModelPlan::run_step(const Step& step, Kernel& kernel, const Bases& bases, std::size_t tile) {
  const std::size_t arrays = step.inputs + step.outputs;
  for (std::size_t array = 0; array < arrays; ++array) {
    const std::size_t number = step.first_place + array;
    const ArrayPlace& place = places_[number];
    pointers_[array] = place.base == kMissing ? nullptr : bases[place.base] + place.offset + tile * advances_[number];
  }
  const std::span<std::byte* const> all(pointers_);
  kernel.run({all.first(step.inputs), all.subspan(step.inputs, step.outputs)});
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
