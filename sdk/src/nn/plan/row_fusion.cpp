// A group runs where its first operation stood. So its members need nothing that is made in between by others. Those
// are the gradients of parameters: they wait until the group has run. Results stay where they are read by others, so
// lifetimes grow: all inputs and outputs of a group live at once. A group that would need more memory so than its
// operations one by one is made shorter. docs/decisions/plans.md

#include "nn/plan/row_fusion.h"

#include <algorithm>

#include "nn/operations/row_operation.h"
#include "nn/plan/row_group.h"

namespace holdfast {

namespace {

using compute::RowArray;

// Blocks of longer rows do not lie in the caches.
constexpr std::int64_t kLongestRow = 16384;
// Longer groups gain nothing, and the look for a group stays short in large graphs.
constexpr std::size_t kLongestGroup = 64;

class RowFusion {
 public:
  RowFusion(const Graph& graph, std::int64_t least_row) : graph_(graph), least_row_(least_row) {}
  Graph run();

 private:
  void find_readers();
  std::optional<Rows> rows_of(std::size_t operation) const;
  bool fits(std::size_t operation, const Rows& rows) const;
  bool fits_as_elements(const GraphOperation& operation, const Rows& rows) const;
  bool may_wait(std::size_t operation) const;
  void find_group(std::size_t first);
  std::vector<std::size_t> members_from(std::size_t first, const Rows& rows) const;
  bool is_worth_it(const std::vector<std::size_t>& members) const;
  bool keeps_memory(const std::vector<std::size_t>& members, const RowGroup& group) const;
  bool is_needed_later(ArrayId array, const std::vector<std::size_t>& members) const;
  RowGroup group_of(const std::vector<std::size_t>& members, const Rows& rows) const;
  GraphOperation fused(const std::vector<std::size_t>& members) const;

  const Graph& graph_;
  const std::int64_t least_row_;
  std::vector<std::vector<std::size_t>> readers_;    // of each array, in order
  std::vector<std::vector<std::size_t>> of_memory_;  // readers of each memory, views included
  std::vector<bool> is_result_;                      // by array: the caller reads it
  std::vector<std::size_t> group_of_;                // by operation: the first member of its group
  std::vector<std::vector<std::size_t>> members_;    // by first member
};

void RowFusion::find_readers() {
  readers_.resize(graph_.arrays.size());
  of_memory_.resize(graph_.arrays.size());
  is_result_.assign(graph_.arrays.size(), false);
  group_of_.assign(graph_.operations.size(), kNoOperation);
  members_.resize(graph_.operations.size());
  for (std::size_t index = 0; index < graph_.operations.size(); ++index) {
    for (const ArrayId input : graph_.operations[index].inputs) {
      if (input == kNoArray) continue;
      readers_[input].push_back(index);
      of_memory_[graph_.memory_of(input)].push_back(index);
    }
  }
  for (const ArrayId output : graph_.outputs) is_result_[output] = true;
  for (const BufferUpdate& update : graph_.updates) is_result_[update.sums] = true;
  for (const ArrayId gradient : graph_.parameter_gradients) {
    if (gradient != kNoArray) is_result_[gradient] = true;
  }
}

// The rows of the widest array of an operation that may begin a group.
std::optional<Rows> RowFusion::rows_of(std::size_t index) const {
  const GraphOperation& operation = graph_.operations[index];
  const std::optional<RowPart> part = operation.operation->row_part();
  if (!part && !operation.operation->element_part()) return std::nullopt;
  const bool is_reduction = part && part->kind != RowPart::Kind::broadcast;
  const ValueSpec& spec = graph_.spec(is_reduction ? operation.inputs[0] : operation.outputs[0]);
  if (!spec.has_samples || spec.shape.rank() == 0 || spec.shape.element_count() == 0) return std::nullopt;
  const Rows rows = {spec.shape};
  // A row of one number would not differ from one number of a row.
  if (rows.width() < std::max<std::int64_t>(least_row_, 2) || rows.width() > kLongestRow) return std::nullopt;
  return rows;
}

bool RowFusion::fits_as_elements(const GraphOperation& operation, const Rows& rows) const {
  const std::optional<RowArray> output = rows.array(graph_.spec(operation.outputs[0]));
  if (output != RowArray::wide && output != RowArray::narrow) return false;
  return std::all_of(operation.inputs.begin(), operation.inputs.end(), [&](ArrayId input) {
    const std::optional<RowArray> array = rows.array(graph_.spec(input));
    if (output == RowArray::wide) return array.has_value();
    return array == RowArray::narrow || array == RowArray::number;
  });
}

bool RowFusion::fits(std::size_t index, const Rows& rows) const {
  const GraphOperation& operation = graph_.operations[index];
  if (operation.operation->element_part()) return fits_as_elements(operation, rows);
  const std::optional<RowPart> part = operation.operation->row_part();
  if (!part) return false;
  if (part->kind == RowPart::Kind::broadcast) return fits_as_elements(operation, rows);
  if (rows.array(graph_.spec(operation.inputs[0])) != RowArray::wide) return false;
  // Sums over samples are taken before those over positions, so only a sample of one row is in order.
  if (part->kind == RowPart::Kind::sum_over_samples) return rows.of_sample() == 1;
  return part->begin + 1 == rows.shape.rank() && part->end == rows.shape.rank();
}

// Whether an operation that is not of the group may run after it.
bool RowFusion::may_wait(std::size_t index) const {
  const GraphOperation& operation = graph_.operations[index];
  // Only small work without samples is put off: what it makes is as small.
  const bool is_small =
      operation.operation->is_view() || operation.operation->element_part() || operation.operation->row_part();
  return is_small && std::none_of(operation.outputs.begin(), operation.outputs.end(),
                                  [&](ArrayId output) { return graph_.spec(output).has_samples; });
}

std::vector<std::size_t> RowFusion::members_from(std::size_t first, const Rows& rows) const {
  std::vector<std::size_t> members;
  std::vector<std::size_t> late;  // what they make is not there before the group has run
  // The passes run apart. What is recomputed is made right before it is needed, and stays there.
  const std::size_t limit = first < graph_.first_backward ? graph_.first_backward : graph_.operations.size();
  for (std::size_t index = first; index < limit && members.size() < kLongestGroup; ++index) {
    if (group_of_[index] != kNoOperation) continue;
    const GraphOperation& operation = graph_.operations[index];
    const bool reads_late_array = std::any_of(operation.inputs.begin(), operation.inputs.end(), [&](ArrayId input) {
      return input != kNoArray && graph_.arrays[input].source == GraphArray::Source::operation &&
             std::binary_search(late.begin(), late.end(), graph_.arrays[input].index);
    });
    if (operation.segment == graph_.operations[first].segment && !reads_late_array && fits(index, rows)) {
      members.push_back(index);
      // A sum over samples is complete after the last row.
      if (!graph_.spec(operation.outputs[0]).has_samples) late.push_back(index);
    } else if (may_wait(index)) {
      late.push_back(index);
    } else {
      break;
    }
  }
  return members;
}

// Functions of elements alone are joined by fuse_elements().
bool RowFusion::is_worth_it(const std::vector<std::size_t>& members) const {
  return members.size() > 1 && std::any_of(members.begin(), members.end(), [&](std::size_t member) {
           const std::optional<RowPart> part = graph_.operations[member].operation->row_part();
           return part && part->kind != RowPart::Kind::broadcast;
         });
}

// Whether another operation reads the memory after the group has run, or the caller does.
bool RowFusion::is_needed_later(ArrayId array, const std::vector<std::size_t>& members) const {
  const ArrayId root = graph_.memory_of(array);
  const bool is_callers = graph_.arrays[root].source != GraphArray::Source::operation;
  const auto is_after = [&](std::size_t reader) {
    return reader > members.front() && !std::binary_search(members.begin(), members.end(), reader);
  };
  return is_callers || is_result_[array] || is_result_[root] ||
         std::any_of(of_memory_[root].begin(), of_memory_[root].end(), is_after);
}

RowGroup RowFusion::group_of(const std::vector<std::size_t>& members, const Rows& rows) const {
  return make_row_group(graph_, rows, members, [&](ArrayId array) { return is_needed_later(array, members); });
}

void RowFusion::find_group(std::size_t first) {
  const std::optional<Rows> rows = rows_of(first);
  if (!rows || !fits(first, *rows)) return;
  std::vector<std::size_t> members = members_from(first, *rows);
  // In steps that grow with the group, so that large graphs take no longer.
  while (is_worth_it(members) && !keeps_memory(members, group_of(members, *rows))) {
    members.resize(members.size() - 1 - members.size() / 8);
  }
  if (!is_worth_it(members)) return;
  for (const std::size_t member : members) group_of_[member] = first;
  members_[first] = std::move(members);
}

// Compares how many numbers of a sample live at once when operations run one by one and when they are a group.
bool RowFusion::keeps_memory(const std::vector<std::size_t>& members, const RowGroup& group) const {
  const auto size = [&](ArrayId array) {
    const ArrayId root = graph_.memory_of(array);
    const bool is_callers = graph_.arrays[root].source != GraphArray::Source::operation;
    return is_callers || !graph_.spec(array).has_samples ? 0 : graph_.spec(array).shape.element_count();
  };
  std::int64_t after = 0;
  for (const ArrayId input : group.inputs) after += size(input);
  for (const ArrayId output : group.outputs) after += size(output);
  // An output takes the place of an input.
  if (group.overwritable_input) after -= size(group.outputs[0]);

  std::int64_t before = 0;
  std::vector<ArrayId> live = group.inputs;
  for (const std::size_t member : members) {
    const GraphOperation& operation = graph_.operations[member];
    live.push_back(operation.outputs[0]);
    std::int64_t sum = 0;
    for (const ArrayId array : live) sum += size(array);
    const auto is_dead = [&](ArrayId array) {
      const std::vector<std::size_t>& readers = of_memory_[graph_.memory_of(array)];
      return !is_needed_later(array, members) && (readers.empty() || readers.back() <= member);
    };
    // An operation may write its output in the place of its first input.
    const bool overwrites = operation.operation->overwritable_input() == 0 && is_dead(operation.inputs[0]) &&
                            graph_.spec(operation.inputs[0]) == graph_.spec(operation.outputs[0]);
    before = std::max(before, sum - (overwrites ? size(operation.outputs[0]) : 0));
    std::erase_if(live, is_dead);
  }
  return after <= before;
}

GraphOperation RowFusion::fused(const std::vector<std::size_t>& members) const {
  const Rows rows = *rows_of(members.front());
  RowGroup group = group_of(members, rows);
  std::vector<ValueSpec> specs;
  for (const ArrayId output : group.outputs) specs.push_back(graph_.spec(output));
  GraphOperation operation = graph_.operations[members.front()];
  operation.operation = make_row_operation({.program = std::move(group.program),
                                            .rows_of_sample = rows.of_sample(),
                                            .outputs = std::move(specs),
                                            .overwritable_input = group.overwritable_input});
  operation.inputs = std::move(group.inputs);
  operation.outputs = std::move(group.outputs);
  // A group has a kernel of its own, also where an operation of it was a copy of another one.
  operation.repeats = kNoOperation;
  return operation;
}

Graph RowFusion::run() {
  find_readers();
  for (std::size_t index = 0; index < graph_.operations.size(); ++index) {
    if (group_of_[index] == kNoOperation) find_group(index);
  }
  Graph result = graph_;
  result.operations.clear();
  // Operations get other numbers. Members have that of their group.
  std::vector<std::size_t> moved(graph_.operations.size(), kNoOperation);
  for (std::size_t index = 0; index < graph_.operations.size(); ++index) {
    if (index == graph_.first_backward) result.first_backward = result.operations.size();
    if (group_of_[index] != kNoOperation && group_of_[index] != index) continue;
    GraphOperation operation = group_of_[index] == index ? fused(members_[index]) : graph_.operations[index];
    if (operation.repeats != kNoOperation) {
      const bool is_alone = group_of_[operation.repeats] == kNoOperation;
      operation.repeats = is_alone ? moved[operation.repeats] : kNoOperation;
    }
    moved[index] = result.operations.size();
    result.operations.push_back(std::move(operation));
  }
  // A graph for inference has no backward pass, so the loop never meets its first operation.
  if (graph_.first_backward == graph_.operations.size()) result.first_backward = result.operations.size();
  for (std::size_t index = 0; index < graph_.operations.size(); ++index) {
    const std::size_t place = group_of_[index] == kNoOperation ? index : group_of_[index];
    for (const ArrayId output : graph_.operations[index].outputs) {
      if (output != kNoArray) result.arrays[output].index = moved[place];
    }
  }
  return result;
}

}  // namespace

Graph fuse_rows(const Graph& graph, std::int64_t least_row) {
  return RowFusion(graph, least_row).run();
}

}  // namespace holdfast
