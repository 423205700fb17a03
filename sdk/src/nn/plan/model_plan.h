#pragma once

// A graph made ready for one number of samples: a kernel for each operation, and where the arrays lie. The memory
// itself belongs to the caller, since plans for different numbers of samples never run at once. docs/decisions/plans.md

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compute/backend.h"
#include "nn/plan/memory_plan.h"

namespace holdfast {

// What a pass calls before each operation, or before each run of several at once, with their names; an exception of it
// ends the pass.
using BeforeOperation = std::function<void(const std::string& names)>;

// Steps [first, end) of a backward pass. After it, the gradients of all parameters from gradients_begin on, in floats
// of the arena, are complete.
struct BackwardPart {
  std::size_t first = 0;
  std::size_t end = 0;
  std::size_t gradients_begin = 0;
};

class ModelPlan {
 public:
  // The back end must outlive the plan.
  ModelPlan(const Graph& graph, const MemoryOptions& memory, compute::Backend& backend, bool is_training);

  std::int64_t samples() const { return samples_; }
  std::size_t output_count() const { return outputs_.size(); }
  std::size_t arena_bytes() const { return arena_bytes_; }
  // What kernels need besides arrays and what their back end says.
  std::size_t own_bytes_of_kernels() const;

  // By Base: the arena, parameters, buffers, gradients, contributions, the model's inputs, the gradients of its
  // outputs. What a pass does not use may be null.
  using Bases = std::vector<std::byte*>;

  // Queues the forward pass. The memory of `bases` must stay as it is until the work is done.
  void forward(const Bases& bases, const BeforeOperation& before);
  // Where the outputs of the model lie after forward().
  const std::byte* output(std::size_t index, const Bases& bases) const;

  // All of the backward pass, in its order. Each part but the last completes at least so many floats. Valid until it is
  // called with another number.
  const std::vector<BackwardPart>& backward_parts(std::size_t least_floats);
  bool is_first(const BackwardPart& part) const { return part.first == first_backward_; }
  // Parts run in their order, after forward() with the same arena and arrays.
  void backward(const BackwardPart& part, const Bases& bases, const BeforeOperation& before);

 private:
  struct Step {
    std::shared_ptr<Kernel> kernel;
    std::string name;             // "conv2d: convolution"; only "relu" without an array of a layer
    std::size_t first_place = 0;  // of its arrays in places_: inputs, then outputs
    std::size_t inputs = 0;
    std::size_t outputs = 0;
    std::size_t group = kNoGroup;  // that begins with this step
    // In the backward pass, the gradients from here on are complete after this step.
    std::size_t gradients_begin = 0;
  };

  // Steps that run on some samples at a time.
  struct Group {
    std::size_t first = 0;
    std::size_t end = 0;
    std::int64_t tile = 1;
    std::string names;                          // of its steps
    std::vector<std::shared_ptr<Kernel>> rest;  // for the last samples, if they are fewer; by step
  };

  // What steps are made of.
  struct Making {
    const Graph& graph;
    const SampleTiles& tiles;
    const MemoryPlan& memory;
    const ArenaLayout& parameters;
    compute::Backend& backend;
    SharedObjects shared{};
    std::vector<std::shared_ptr<Kernel>> kernels{};  // by operation, of those before
  };
  void add_step(Making& making, std::size_t operation);
  void add_places(const Making& making, const std::vector<ArrayId>& arrays, std::int64_t tile);
  std::shared_ptr<Kernel> make_kernel(Making& making, const GraphOperation& operation, std::int64_t samples) const;
  void find_complete_gradients(const Graph& graph, const ArenaLayout& parameters,
                               const std::vector<std::size_t>& step_of_operation);
  std::vector<BackwardPart> divide_backward(std::size_t least_floats) const;
  void run(std::size_t first, std::size_t end, const Bases& bases, const BeforeOperation& before);
  void run_group(const Group& group, const Bases& bases, const BeforeOperation& before);
  void run_step(const Step& step, Kernel& kernel, const Bases& bases, std::size_t tile);

  const std::int64_t samples_;
  const bool is_training_;
  const std::size_t parameter_floats_;
  std::size_t arena_bytes_ = 0;
  std::vector<Step> steps_;
  std::size_t first_backward_ = 0;  // among the steps
  std::vector<ArrayPlace> places_;
  std::vector<std::size_t> advances_;  // by place: bytes from one tile to the next; 0 outside of groups
  std::vector<Group> groups_;
  std::vector<ArrayPlace> outputs_;
  std::vector<std::byte*> pointers_;  // of the step that runs; as many as the largest one has arrays
  // What backward_parts() gave last, and for what. A training asks for the same in each step.
  std::vector<BackwardPart> parts_;
  std::size_t parts_least_floats_ = 0;
};

}  // namespace holdfast
