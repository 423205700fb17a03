// Each operation begins as a group of its own. A group runs where its last operation, the sink, stood: that is where
// all of its inputs are there. Producers thus run later than before, and their inputs live longer. So a producer joins
// only if at most one array of the output's size lives longer in place of the one that goes away. Joining saves memory
// traffic: most time of an operation on elements goes into reading and writing its arrays. docs/decisions/plans.md

#include "nn/plan/fusion.h"

#include <algorithm>
#include <bit>

#include "nn/operations/elements.h"

namespace holdfast {

namespace {

using compute::ElementOperand;
using compute::ElementProgram;

// The plans of present models depend on it. Updates of optimizers may be longer.
constexpr std::size_t kMaximumMembers = 16;

struct FusedGroup {
  ElementProgram program{};
  std::vector<ArrayId> inputs{};
};

class Fusion {
 public:
  explicit Fusion(const Graph& graph) : graph_(graph) {}
  Graph run();

 private:
  void find_readers();
  void try_to_join(std::size_t producer, std::size_t consumer);
  bool is_between(ArrayId array, std::size_t consumer) const;
  bool keeps_memory(std::size_t producer, std::size_t consumer) const;
  std::size_t last_place(ArrayId root) const;
  std::optional<FusedGroup> group_of(const std::vector<std::size_t>& members) const;
  GraphOperation fused(std::size_t sink) const;

  // What is kept between the passes would go away if a forward operation joined a backward one.
  bool is_forward(std::size_t operation) const { return operation < graph_.first_backward; }

  const Graph& graph_;
  std::vector<std::optional<ElementPart>> parts_;    // by operation
  std::vector<std::vector<std::size_t>> readers_;    // of each array, in order
  std::vector<std::vector<std::size_t>> of_memory_;  // readers of each memory, views included
  std::vector<bool> is_result_;                      // by array: the caller reads it
  std::vector<bool> stays_;                          // by memory: a plan may not give it to another array
  std::vector<std::size_t> sink_;                    // by operation: the last one of its group
  std::vector<std::vector<std::size_t>> members_;    // by sink
};

void Fusion::find_readers() {
  readers_.resize(graph_.arrays.size());
  of_memory_.resize(graph_.arrays.size());
  is_result_.assign(graph_.arrays.size(), false);
  stays_.assign(graph_.arrays.size(), false);
  for (std::size_t index = 0; index < graph_.operations.size(); ++index) {
    // Each operation begins as the sink and the only member of its group.
    parts_.push_back(graph_.operations[index].operation->element_part());
    sink_.push_back(index);
    members_.push_back({index});
    for (const ArrayId input : graph_.operations[index].inputs) {
      if (input == kNoArray) continue;
      readers_[input].push_back(index);
      // A view reads the memory of the array that it shows, so lifetimes are those of memories and not of arrays.
      of_memory_[graph_.memory_of(input)].push_back(index);
    }
  }
  for (const ArrayId output : graph_.outputs) is_result_[output] = true;
  for (const BufferUpdate& update : graph_.updates) is_result_[update.sums] = true;
  for (const ArrayId gradient : graph_.parameter_gradients) {
    if (gradient != kNoArray) is_result_[gradient] = true;
  }
  for (ArrayId array = 0; array < graph_.arrays.size(); ++array) {
    // A plan gives away neither the memory of the caller nor a result that the caller reads. Such memory costs nothing
    // if it is read later.
    const bool is_callers = graph_.arrays[array].source != GraphArray::Source::operation;
    if (is_callers || is_result_[array]) stays_[graph_.memory_of(array)] = true;
  }
}

// Whether nothing but `consumer` needs the array.
bool Fusion::is_between(ArrayId array, std::size_t consumer) const {
  // One consumer may read the array twice, as in `x * x`.
  const bool is_only_reader =
      std::all_of(readers_[array].begin(), readers_[array].end(), [&](std::size_t one) { return one == consumer; });
  return is_only_reader && !is_result_[array];
}

// Where the memory is last read.
std::size_t Fusion::last_place(ArrayId root) const {
  std::size_t last = 0;
  // A member of a group reads its inputs where the sink of the group runs.
  for (const std::size_t reader : of_memory_[root]) last = std::max(last, sink_[reader]);
  return last;
}

// The program of a group's operations, which are in order; empty if it has no room for all of them.
std::optional<FusedGroup> Fusion::group_of(const std::vector<std::size_t>& members) const {
  FusedGroup group;
  ElementProgram& program = group.program;
  // A device takes the program as one argument of a kernel, so each of its lists has a fixed size.
  if (members.size() > kMaximumMembers) return std::nullopt;
  const auto constant_operand = [&](float value) -> std::optional<ElementOperand> {
    std::uint8_t place = 0;
    // As bits, since 0 and -0 are different constants.
    while (place < program.constant_count &&
           std::bit_cast<std::uint32_t>(program.constants[place]) != std::bit_cast<std::uint32_t>(value)) {
      ++place;
    }
    if (place == ElementProgram::kMaximumConstants) return std::nullopt;
    if (place == program.constant_count) program.constants[program.constant_count++] = value;
    return ElementOperand{ElementOperand::Kind::constant, place};
  };
  const auto array_operand = [&](ArrayId array) -> std::optional<ElementOperand> {
    const GraphArray& one = graph_.arrays[array];
    // What a member makes stays in a register of the program. It takes no input, and that is what joining gains.
    const auto maker = one.source == GraphArray::Source::operation
                           ? std::find(members.begin(), members.end(), one.index)
                           : members.end();
    if (maker != members.end()) {
      return ElementOperand{ElementOperand::Kind::result, static_cast<std::uint8_t>(maker - members.begin())};
    }
    const auto found = std::find(group.inputs.begin(), group.inputs.end(), array);
    const auto place = static_cast<std::size_t>(found - group.inputs.begin());
    if (place == ElementProgram::kMaximumInputs) return std::nullopt;
    if (found == group.inputs.end()) group.inputs.push_back(array);
    return ElementOperand{ElementOperand::Kind::input, static_cast<std::uint8_t>(place)};
  };
  for (const std::size_t member : members) {
    compute::ElementInstruction& instruction = program.instructions[program.instruction_count++];
    instruction.function = parts_[member]->function;
    std::size_t input = 0;
    for (std::size_t argument = 0; argument < parts_[member]->constants.size(); ++argument) {
      const std::optional<float>& constant = parts_[member]->constants[argument];
      const auto operand =
          constant ? constant_operand(*constant) : array_operand(graph_.operations[member].inputs[input++]);
      if (!operand) return std::nullopt;
      instruction.operands[argument] = *operand;
    }
  }
  // Members are in the order of the graph, so the last instruction is that of the sink. All others are read within the
  // group alone.
  program.input_count = static_cast<std::uint8_t>(group.inputs.size());
  program.outputs[0] = static_cast<std::uint8_t>(program.instruction_count - 1);
  program.output_count = 1;
  // More arrays may leave fewer axes that can be joined. Arrays with equal specs are one long row, whatever their rank
  // is. Others may need each axis, and one for the samples.
  const ValueSpec& output = graph_.spec(graph_.operations[members.back()].outputs[0]);
  const bool are_alike = std::all_of(group.inputs.begin(), group.inputs.end(),
                                     [&](ArrayId input) { return graph_.spec(input) == output; });
  if (!are_alike && output.shape.rank() + 1 > compute::kMaximumAxes) return std::nullopt;
  return group;
}

bool Fusion::keeps_memory(std::size_t producer, std::size_t consumer) const {
  const ValueSpec& output = graph_.spec(graph_.operations[consumer].outputs[0]);
  // Inputs are broadcast to the output, so those of another spec are smaller as a rule and do not count. The array
  // between producer and consumer goes away, which pays for one that lives longer.
  std::vector<ArrayId> longer;  // memories that would live longer
  const FusedGroup group = *group_of(members_[producer]);
  for (const ArrayId input : group.inputs) {
    const ArrayId root = graph_.memory_of(input);
    if (stays_[root] || graph_.spec(input) != output || last_place(root) >= consumer) continue;
    if (std::find(longer.begin(), longer.end(), root) == longer.end()) longer.push_back(root);
  }
  return longer.size() <= 1;
}

void Fusion::try_to_join(std::size_t producer, std::size_t consumer) {
  // An instruction reads results of earlier instructions alone. Both lists are sorted, so the merged one is in the
  // order of the graph.
  std::vector<std::size_t> members;
  std::merge(members_[producer].begin(), members_[producer].end(), members_[consumer].begin(), members_[consumer].end(),
             std::back_inserter(members));
  if (!group_of(members) || !keeps_memory(producer, consumer)) return;
  for (const std::size_t member : members) sink_[member] = consumer;
  members_[producer].clear();
  members_[consumer] = std::move(members);
}

// The output may overwrite the first input, so that is one which is not needed afterwards, if there is one.
GraphOperation Fusion::fused(std::size_t sink) const {
  FusedGroup group = *group_of(members_[sink]);
  GraphOperation operation = graph_.operations[sink];
  const ValueSpec& output = graph_.spec(operation.outputs[0]);
  for (std::size_t input = 0; input < group.inputs.size(); ++input) {
    const ArrayId root = graph_.memory_of(group.inputs[input]);
    if (stays_[root] || graph_.spec(group.inputs[input]) != output || last_place(root) > sink) continue;
    std::swap(group.inputs[0], group.inputs[input]);
    for (std::size_t i = 0; i < group.program.instruction_count; ++i) {
      for (ElementOperand& operand : group.program.instructions[i].operands) {
        if (operand.kind != ElementOperand::Kind::input) continue;
        if (operand.index == 0) {
          operand.index = static_cast<std::uint8_t>(input);
        } else if (operand.index == input) {
          operand.index = 0;
        }
      }
    }
    break;
  }
  operation.operation = make_element_program(group.program, output);
  operation.inputs = std::move(group.inputs);
  // A group has a kernel of its own, also where its sink was a copy of another operation.
  operation.repeats = kNoOperation;
  return operation;
}

Graph Fusion::run() {
  find_readers();
  for (std::size_t consumer = 0; consumer < graph_.operations.size(); ++consumer) {
    if (!parts_[consumer]) continue;
    for (const ArrayId input : graph_.operations[consumer].inputs) {
      // Operations on elements have all of their inputs, so none is kNoArray.
      const GraphArray& array = graph_.arrays[input];
      const std::size_t producer = array.index;
      // The second read of `x * x` finds that the producer of x has joined already. Then its sink is the consumer.
      const bool fits = array.source == GraphArray::Source::operation && parts_[producer] &&
                        sink_[producer] == producer && is_between(input, consumer) &&
                        is_forward(producer) == is_forward(consumer) &&
                        array.spec == graph_.spec(graph_.operations[consumer].outputs[0]);
      if (fits) try_to_join(producer, consumer);
    }
  }
  Graph result = graph_;
  result.operations.clear();
  // Members of groups leave the list, so the operations that stay get other numbers.
  std::vector<std::size_t> moved(graph_.operations.size(), kNoOperation);  // by operation that is still there
  for (std::size_t index = 0; index < graph_.operations.size(); ++index) {
    if (index == graph_.first_backward) result.first_backward = result.operations.size();
    if (sink_[index] != index) continue;
    GraphOperation operation = members_[index].size() > 1 ? fused(index) : graph_.operations[index];
    if (operation.repeats != kNoOperation) {
      // Where the operation that it repeats has become a part of another one, it gets a kernel of its own.
      const std::size_t original = operation.repeats;
      operation.repeats = members_[original].size() == 1 ? moved[original] : kNoOperation;
    }
    for (const ArrayId output : operation.outputs) result.arrays[output].index = result.operations.size();
    moved[index] = result.operations.size();
    result.operations.push_back(std::move(operation));
  }
  // A graph for inference has no backward pass, so the loop never meets its first operation.
  if (graph_.first_backward == graph_.operations.size()) result.first_backward = result.operations.size();
  // No kernel makes an array between operations that were joined; it counts as one of theirs.
  for (std::size_t index = 0; index < graph_.operations.size(); ++index) {
    if (sink_[index] == index) continue;
    for (const ArrayId output : graph_.operations[index].outputs) result.arrays[output].index = moved[sink_[index]];
  }
  return result;
}

}  // namespace

Graph fuse_elements(const Graph& graph) {
  return Fusion(graph).run();
}

}  // namespace holdfast
