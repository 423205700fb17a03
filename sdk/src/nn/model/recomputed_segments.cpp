// An array stays as it is where something outside of its segment needs it in the backward pass: it lives until then
// anyway, and what is computed again may start from it. This holds for the inputs of a segment, and for what another
// segment starts from. docs/decisions/plans.md

#include "nn/model/recomputed_segments.h"

#include <algorithm>
#include <map>
#include <utility>

namespace holdfast {

namespace {

class Recomputation {
 public:
  explicit Recomputation(Graph& graph) : graph_(graph) {}
  void run();

 private:
  void find_kept();
  void keep(ArrayId array);
  void plan_segment(std::size_t segment);
  void need(ArrayId array, std::vector<bool>& operations) const;
  ArrayId moved(ArrayId array, std::size_t segment) const;
  void append_copy(std::size_t operation, std::vector<GraphOperation>& operations);

  // The segment whose forward pass makes an array; 0: none.
  std::size_t segment_of(ArrayId array) const {
    // A copy is never copied again.
    if (array == kNoArray || array >= originals_) return 0;
    const GraphArray& one = graph_.arrays[array];
    // What the backward pass makes is read soon, and not worth computing twice.
    const bool is_forward = one.source == GraphArray::Source::operation && one.index < graph_.first_backward;
    return is_forward ? graph_.operations[one.index].segment : 0;
  }
  bool is_recomputed(ArrayId array, std::size_t segment) const {
    return segment_of(array) == segment && !is_kept_[array];
  }

  Graph& graph_;
  const std::size_t originals_ = graph_.arrays.size();      // arrays after these are copies
  std::vector<bool> is_kept_;                               // by array
  std::map<std::size_t, std::vector<std::size_t>> copied_;  // forward operations, by the one that they stand before
  std::vector<ArrayId> copy_of_;                            // by array; kNoArray: it has no copy
};

// What a view shows is kept with the view.
void Recomputation::keep(ArrayId array) {
  // A view without the memory that it shows would read what another array has written there.
  while (!is_kept_[array]) {
    is_kept_[array] = true;
    const GraphArray& one = graph_.arrays[array];
    if (one.source != GraphArray::Source::operation || !graph_.operations[one.index].operation->is_view()) return;
    array = graph_.operations[one.index].inputs[0];
  }
}

void Recomputation::find_kept() {
  is_kept_.assign(graph_.arrays.size(), false);
  // The caller reads outputs until the next forward pass.
  for (const ArrayId output : graph_.outputs) keep(output);
  for (std::size_t index = 0; index < graph_.operations.size(); ++index) {
    const GraphOperation& operation = graph_.operations[index];
    // An array that is read within its segment alone may go away between the passes.
    const bool is_forward = index < graph_.first_backward;
    for (const ArrayId input : operation.inputs) {
      if (segment_of(input) == 0 || segment_of(input) == operation.segment) continue;
      // A forward operation without a segment is never computed again.
      if (!is_forward || operation.segment != 0) keep(input);
    }
  }
}

// Marks the operations that compute an array again.
void Recomputation::need(ArrayId array, std::vector<bool>& operations) const {
  // A list takes the place of recursion, since a segment may be longer than a stack allows.
  std::vector<ArrayId> needed = {array};
  while (!needed.empty()) {
    const std::size_t maker = graph_.arrays[needed.back()].index;
    needed.pop_back();
    if (operations[maker]) continue;
    operations[maker] = true;
    for (const ArrayId input : graph_.operations[maker].inputs) {
      // The walk ends at arrays that are kept: the copies start from them.
      if (input != kNoArray && is_recomputed(input, graph_.operations[maker].segment)) needed.push_back(input);
    }
  }
}

void Recomputation::plan_segment(std::size_t segment) {
  std::vector<bool> operations(graph_.first_backward, false);
  // All copies of a segment stand before the first backward operation that reads one of them. So they live no longer
  // than needed, and each runs once.
  std::size_t place = kNoOperation;
  for (std::size_t index = graph_.first_backward; index < graph_.operations.size(); ++index) {
    if (graph_.operations[index].segment != segment) continue;
    for (const ArrayId input : graph_.operations[index].inputs) {
      if (input == kNoArray || !is_recomputed(input, segment)) continue;
      need(input, operations);
      if (place == kNoOperation) place = index;
    }
  }
  // Copies stand in the order of their originals, so each finds its inputs.
  for (std::size_t operation = 0; operation < operations.size(); ++operation) {
    if (operations[operation]) copied_[place].push_back(operation);
  }
}

// The array that an operation of a segment reads in the backward pass.
ArrayId Recomputation::moved(ArrayId array, std::size_t segment) const {
  return segment != 0 && segment_of(array) == segment && copy_of_[array] != kNoArray && !is_kept_[array]
             ? copy_of_[array]
             : array;
}

void Recomputation::append_copy(std::size_t index, std::vector<GraphOperation>& operations) {
  GraphOperation copy = graph_.operations[index];
  // Copies are inserted in the backward pass alone. So forward operations keep their numbers.
  copy.repeats = index;
  // A copy reads copies too, where its inputs were not kept.
  for (ArrayId& input : copy.inputs) input = moved(input, copy.segment);
  for (ArrayId& output : copy.outputs) {
    graph_.arrays.push_back(graph_.arrays[output]);
    copy_of_[output] = graph_.arrays.size() - 1;
    output = copy_of_[output];
  }
  operations.push_back(std::move(copy));
}

void Recomputation::run() {
  std::size_t segments = 0;
  for (const GraphOperation& operation : graph_.operations) segments = std::max(segments, operation.segment);
  // Most models have no segments, and their graph stays as it is.
  if (segments == 0) return;
  find_kept();
  for (std::size_t segment = 1; segment <= segments; ++segment) plan_segment(segment);
  copy_of_.assign(originals_, kNoArray);
  std::vector<GraphOperation> operations;
  for (std::size_t index = 0; index < graph_.operations.size(); ++index) {
    const auto copied = copied_.find(index);
    if (copied != copied_.end()) {
      for (const std::size_t operation : copied->second) append_copy(operation, operations);
    }
    GraphOperation operation = graph_.operations[index];
    if (index >= graph_.first_backward) {
      for (ArrayId& input : operation.inputs) input = moved(input, operation.segment);
    }
    operations.push_back(std::move(operation));
  }
  graph_.operations = std::move(operations);
  for (std::size_t index = 0; index < graph_.operations.size(); ++index) {
    for (const ArrayId output : graph_.operations[index].outputs) graph_.arrays[output].index = index;
  }
}

}  // namespace

void recompute_segments(Graph& graph) {
  Recomputation(graph).run();
}

}  // namespace holdfast
