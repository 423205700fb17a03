#pragma once

// Runs losses and metrics that are functions of values: a small graph of their own, whose inputs are the outputs of a
// model, the targets and the weights. A program belongs to one back end and is used by one thread at a time.
// docs/decisions/losses.md

#include <functional>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "compute/backend.h"
#include "compute/growing_floats.h"
#include "nn/plan/model_plan.h"

namespace holdfast {

// The arrays of one sample that a function is described for.
struct EvaluatedShapes {
  Shape outputs;
  Shape targets;
  // A weight for each sample (no axes) or for each of the first axes of the outputs; nothing without weights.
  std::optional<Shape> weights = {};

  friend bool operator==(const EvaluatedShapes&, const EvaluatedShapes&) = default;
};

// A graph whose outputs are sums over the samples.
struct SumsGraph {
  Graph graph;
  std::vector<std::size_t> elements;  // of each sum; 1 for a number
  ArenaLayout differentiated;         // the model's outputs, where there is a backward pass to them
  bool has_weights = false;

  // The size of all sums together.
  std::size_t element_count() const;
};

using DescribeLoss = std::function<Value(const Value& outputs, const Value& targets)>;
using DescribeSums = std::function<std::vector<Value>(const Value& outputs, const Value& targets)>;

// `what` begins the sentences: "loss \"huber\"". Throw Error{invalid_argument} for values that are not f32, do not
// begin with the axes of the weights, or do not depend on the samples, and for layers among them. The loss must also
// depend on the outputs in a way that has a gradient.
SumsGraph graph_of_loss(const std::string& what, const DescribeLoss& describe, const EvaluatedShapes& shapes);
// Whether the sum takes the mean of the elements of a sample (or of what a weight belongs to), or all of them.
enum class ElementsOfSum { mean, all };
// Each sum keeps so many last axes of its value, so it may be an array. Throws for values that have fewer axes.
SumsGraph graph_of_sums(const std::string& what, const DescribeSums& describe, const EvaluatedShapes& shapes,
                        ElementsOfSum elements = ElementsOfSum::mean, std::size_t kept_axes = 0);

class ValueProgram {
 public:
  // The back end must outlive the program.
  ValueProgram(SumsGraph graph, compute::Backend& backend);

  // Makes what a run of so many samples needs, and adds to `key` the numbers under which it may be repeated. The scale
  // is that of gradients.
  void prepare(std::int64_t samples, float scale, std::vector<std::uint64_t>& key);
  // What prepare() would allocate for so many samples, and its kernels, besides what the back end counts.
  std::size_t planned_bytes(std::int64_t samples) const;

  // All lie in the memory of the back end.
  struct Arrays {
    const float* outputs = nullptr;
    const float* targets = nullptr;
    const float* weights = nullptr;  // only of a graph with weights
    float* gradient = nullptr;       // of the outputs; null if none is wanted
    float* sums = nullptr;           // element_count() of them, one output of the graph after the other
  };
  // Queues the work for the samples that were prepared last.
  void run(const Arrays& arrays);

 private:
  // Batches differ in few sizes, as for ModelProgram.
  static constexpr std::size_t kPlansKept = 8;

  struct NumberedPlan {
    std::unique_ptr<ModelPlan> plan;
    std::uint64_t number = 0;
  };

  std::unique_ptr<ModelPlan> make_plan(std::int64_t samples) const;

  const SumsGraph graph_;
  compute::Backend& backend_;
  std::list<NumberedPlan> plans_;  // the one that was prepared last is first
  std::uint64_t plans_made_ = 0;
  compute::GrowingFloats arena_;
  std::shared_ptr<float[]> scale_;    // what the gradient of the sum is: one number
  std::optional<float> known_scale_;  // that lies there
};

}  // namespace holdfast
