// The backward pass is made of operations too, so plans and back ends treat it like the forward pass. Only what lies
// between a parameter and an output is differentiated. All other gradients would cost time and memory, and nothing
// would read them. docs/decisions/models.md

#include "nn/model/differentiate.h"

#include <algorithm>
#include <set>

#include "holdfast/base/error.h"
#include "nn/operations/operations.h"

namespace holdfast {

namespace {

class Differentiation {
 public:
  explicit Differentiation(GraphBuilder& builder) : builder_(builder), graph_(builder.graph()) {}

  void run(std::size_t parameters, const std::vector<BatchStatistics>& statistics);

 private:
  void find_trained();
  void append_statistics(const std::vector<BatchStatistics>& statistics);
  void go_back(std::size_t operation);
  void add_gradient(ArrayId array, const Value& gradient);
  void give_parameters_gradients(std::size_t parameters);
  MaybeValue bound(ArrayId array) const { return array == kNoArray ? MaybeValue() : MaybeValue(builder_.bind(array)); }

  GraphBuilder& builder_;
  Graph& graph_;
  std::vector<bool> depends_on_parameters_;  // by array of the forward pass
  std::vector<ArrayId> gradients_;           // by array of the forward pass; kNoArray: none yet
};

void Differentiation::find_trained() {
  depends_on_parameters_.assign(graph_.arrays.size(), false);
  for (ArrayId array = 0; array < graph_.arrays.size(); ++array) {
    if (graph_.arrays[array].source == GraphArray::Source::parameter) depends_on_parameters_[array] = true;
  }
  for (GraphOperation& operation : graph_.operations) {
    for (const ArrayId input : operation.inputs) {
      if (input != kNoArray && depends_on_parameters_[input]) operation.is_trained = true;
    }
    const ArrayId first = operation.inputs.empty() ? kNoArray : operation.inputs[0];
    // A back end prepares the backward pass to the first input only if this says so (compute::Use::input_gradient).
    operation.has_input_gradient = first != kNoArray && depends_on_parameters_[first];
    // What follows a stop_gradient() or a comparison depends on the parameters before it, but not in a way that trains
    // them.
    const bool passes = operation.is_trained && operation.operation->passes_gradient();
    for (const ArrayId output : operation.outputs) depends_on_parameters_[output] = passes;
  }
}

void Differentiation::add_gradient(ArrayId array, const Value& gradient) {
  ArrayId& sum = gradients_[array];
  // The sum so far is the first operand, in whose memory the addition may write its result.
  sum = builder_.append(sum == kNoArray ? gradient : add(builder_.bind(sum), gradient));
}

void Differentiation::go_back(std::size_t index) {
  // A copy: appending operations moves them.
  const GraphOperation operation = graph_.operations[index];
  if (!operation.is_trained || !operation.operation->passes_gradient()) return;
  std::vector<MaybeValue> inputs, output_gradients;
  std::vector<Value> outputs;
  std::vector<bool> needed;
  bool has_gradient = false;
  for (const ArrayId input : operation.inputs) {
    inputs.push_back(bound(input));
    needed.push_back(input != kNoArray && depends_on_parameters_[input]);
  }
  for (const ArrayId output : operation.outputs) {
    // An operation may use its outputs too: the gradient of e^x is a multiple of e^x.
    outputs.push_back(builder_.bind(output));
    output_gradients.push_back(bound(gradients_[output]));
    has_gradient = has_gradient || gradients_[output] != kNoArray;
  }
  // The loss does not depend on what this operation makes.
  if (!has_gradient) return;
  // Recomputation finds the backward pass of a segment by this number.
  builder_.set_segment(operation.segment);
  const std::vector<MaybeValue> gradients = operation.operation->gradient(
      {.inputs = inputs, .outputs = outputs, .output_gradients = output_gradients, .needed = needed});
  for (std::size_t input = 0; input < gradients.size(); ++input) {
    // An operation may describe all of its gradients, the ones that are not needed too. Those are not appended, so they
    // cost nothing.
    if (needed[input] && gradients[input]) add_gradient(operation.inputs[input], *gradients[input]);
  }
}

void Differentiation::append_statistics(const std::vector<BatchStatistics>& statistics) {
  // A shard's contributions are one array, in which the sums of all layers follow one another. update_buffers() uses
  // the same offsets.
  std::size_t offset = 0;
  std::set<ArrayId> taken;
  for (const BatchStatistics& one : statistics) {
    ArrayId sums = builder_.append(one.sums);
    // Sums are written to the caller's memory, so they need an array of their own.
    const ArrayId memory = graph_.memory_of(sums);
    if (graph_.arrays[memory].source != GraphArray::Source::operation || taken.contains(memory)) {
      sums = builder_.append(copy(builder_.bind(sums)));
    }
    taken.insert(graph_.memory_of(sums));
    graph_.updates.push_back({.sums = sums, .offset = offset, .buffers = one.buffers, .momentum = one.momentum});
    offset += static_cast<std::size_t>(graph_.spec(sums).shape.element_count());
  }
}

void Differentiation::run(std::size_t parameters, const std::vector<BatchStatistics>& statistics) {
  find_trained();
  graph_.first_backward = graph_.operations.size();
  // Arrays that are added from here on belong to the backward pass, and have no gradients themselves.
  gradients_.assign(graph_.arrays.size(), kNoArray);
  append_statistics(statistics);
  for (std::size_t output = 0; output < graph_.outputs.size(); ++output) {
    const ArrayId array = graph_.outputs[output];
    // The caller passes a gradient for each output, also for one that depends on no parameter.
    const ArrayId gradient = builder_.add_array(GraphArray::Source::output_gradient, output, graph_.spec(array));
    if (depends_on_parameters_[array]) add_gradient(array, builder_.bind(gradient));
  }
  // All readers of an array come later in the graph. So the sum of its gradients is complete when its maker has its
  // turn.
  for (std::size_t operation = graph_.first_backward; operation-- > 0;) go_back(operation);
  builder_.set_segment(0);
  give_parameters_gradients(parameters);
}

// A parameter's gradient is an array of its own, since it is written to the caller's memory. `x + w` for example has
// one array for the gradients of both.
void Differentiation::give_parameters_gradients(std::size_t parameters) {
  graph_.parameter_gradients.assign(parameters, kNoArray);
  std::vector<ArrayId> taken;
  const std::size_t forward_arrays = gradients_.size();
  for (ArrayId array = 0; array < forward_arrays; ++array) {
    if (graph_.arrays[array].source != GraphArray::Source::parameter || gradients_[array] == kNoArray) continue;
    ArrayId& gradient = graph_.parameter_gradients[graph_.arrays[array].index];
    gradient = gradients_[array];
    const ArrayId memory = graph_.memory_of(gradient);
    // An output's gradient may reach a parameter unchanged. That array belongs to the caller, and does not lie in the
    // arena of gradients.
    const bool is_callers = graph_.arrays[memory].source != GraphArray::Source::operation;
    if (is_callers || std::find(taken.begin(), taken.end(), memory) != taken.end()) {
      gradient = builder_.append(copy(builder_.bind(gradient)));
    }
    taken.push_back(graph_.memory_of(gradient));
  }
}

}  // namespace

void differentiate(GraphBuilder& builder, std::size_t parameters, const std::vector<BatchStatistics>& statistics) {
  Differentiation(builder).run(parameters, statistics);
}

}  // namespace holdfast
