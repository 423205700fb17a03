// Repeated numbers are not an array here: an instruction reads the one number of a row where it takes another one for
// each element. A product that only a sum reads is computed while it is added up. Both leave the bits as they are,
// since a product is rounded to a float either way. docs/decisions/plans.md

#include "nn/plan/row_group.h"

#include <algorithm>
#include <bit>
#include <map>

namespace holdfast {

using compute::ElementFunction;
using compute::RowArray;
using compute::RowInstruction;
using compute::RowOperand;

std::optional<RowArray> Rows::array(const ValueSpec& spec) const {
  if (spec.dtype != DType::f32) return std::nullopt;
  const std::size_t rank = spec.shape.rank();
  // An array of samples has a row for each row of the group, or one number for each (`narrow`). One without samples is
  // the same for all rows.
  if (spec.has_samples) {
    if (spec.shape == shape) return RowArray::wide;
    std::vector<std::int64_t> narrow = shape.extents();
    narrow.back() = 1;
    return spec.shape == Shape(std::move(narrow)) ? std::optional(RowArray::narrow) : std::nullopt;
  }
  if (spec.shape.element_count() == 1) return RowArray::number;
  const bool is_column = rank > 0 && spec.shape.element_count() == width() && spec.shape[rank - 1] == width();
  return is_column ? std::optional(RowArray::column) : std::nullopt;
}

namespace {

class GroupMaker {
 public:
  GroupMaker(const Graph& graph, const Rows& rows, const std::vector<std::size_t>& members,
             const std::function<bool(ArrayId)>& is_needed_later)
      : graph_(graph), rows_(rows), members_(members), is_needed_later_(is_needed_later) {}

  RowGroup make();

 private:
  void add_member(std::size_t member);
  RowOperand operand(ArrayId array);
  RowOperand constant(float value);
  bool is_read_wide(ArrayId array) const;
  bool is_wide(const RowOperand& operand) const;
  std::size_t reader_count(std::size_t instruction) const;
  void compute_products_in_sums();
  void remove(std::size_t instruction);
  void choose_overwritable_input();

  const Graph& graph_;
  const Rows& rows_;
  const std::vector<std::size_t>& members_;
  const std::function<bool(ArrayId)>& is_needed_later_;
  std::map<ArrayId, RowOperand> operands_;  // what is known to the program
  RowGroup group_;
};

RowOperand GroupMaker::operand(ArrayId array) {
  const auto found = operands_.find(array);
  if (found != operands_.end()) return found->second;
  // What no member has made comes from outside of the group, and becomes an input the first time that it is read.
  const RowOperand input = {RowOperand::Kind::input, group_.inputs.size()};
  group_.inputs.push_back(array);
  group_.program.inputs.push_back(*rows_.array(graph_.spec(array)));
  operands_[array] = input;
  return input;
}

RowOperand GroupMaker::constant(float value) {
  std::vector<float>& constants = group_.program.constants;
  // As bits, since 0 and -0 are different constants.
  const auto is_equal = [&](float other) {
    return std::bit_cast<std::uint32_t>(other) == std::bit_cast<std::uint32_t>(value);
  };
  const auto found = std::find_if(constants.begin(), constants.end(), is_equal);
  const RowOperand place = {RowOperand::Kind::constant, static_cast<std::size_t>(found - constants.begin())};
  if (found == constants.end()) constants.push_back(value);
  return place;
}

// Whether an instruction needs each number of the array in memory.
bool GroupMaker::is_read_wide(ArrayId array) const {
  return std::any_of(members_.begin(), members_.end(), [&](std::size_t member) {
    const GraphOperation& operation = graph_.operations[member];
    return operation.operation->row_part() &&
           std::find(operation.inputs.begin(), operation.inputs.end(), array) != operation.inputs.end();
  });
}

void GroupMaker::add_member(std::size_t member) {
  const GraphOperation& operation = graph_.operations[member];
  const ArrayId output = operation.outputs[0];
  RowInstruction instruction;
  if (const std::optional<ElementPart> part = operation.operation->element_part()) {
    instruction.function = part->function;
    instruction.is_wide = rows_.array(graph_.spec(output)) == RowArray::wide;
    std::size_t input = 0;
    for (std::size_t argument = 0; argument < part->constants.size(); ++argument) {
      const std::optional<float>& number = part->constants[argument];
      instruction.operands[argument] = number ? constant(*number) : operand(operation.inputs[input++]);
    }
  } else {
    const RowPart row_part = *operation.operation->row_part();
    instruction.operands[0] = operand(operation.inputs[0]);
    // A broadcast makes no array if all its readers are elements: they read the number of the row in its place.
    if (row_part.kind == RowPart::Kind::broadcast && !is_needed_later_(output) && !is_read_wide(output)) {
      operands_[output] = instruction.operands[0];
      return;
    }
    if (row_part.kind == RowPart::Kind::reduction) {
      instruction.kind = RowInstruction::Kind::reduction;
      instruction.reduction = row_part.reduction;
      instruction.is_wide = false;
    }
    if (row_part.kind == RowPart::Kind::sum_over_samples) instruction.kind = RowInstruction::Kind::column_sum;
  }
  // Results that only members read stay in the program's own memory, a row of each.
  if (is_needed_later_(output)) {
    instruction.output = group_.outputs.size();
    group_.outputs.push_back(output);
  }
  operands_[output] = {RowOperand::Kind::result, group_.program.instructions.size()};
  group_.program.instructions.push_back(instruction);
}

bool GroupMaker::is_wide(const RowOperand& operand) const {
  if (operand.kind == RowOperand::Kind::input) return group_.program.inputs[operand.index] == RowArray::wide;
  return operand.kind == RowOperand::Kind::result && group_.program.instructions[operand.index].is_wide;
}

std::size_t GroupMaker::reader_count(std::size_t result) const {
  std::size_t count = 0;
  for (const RowInstruction& instruction : group_.program.instructions) {
    for (std::size_t i = 0; i < operand_count(instruction.function); ++i) {
      const RowOperand& operand = instruction.operands[i];
      if (operand.kind == RowOperand::Kind::result && operand.index == result) ++count;
    }
  }
  return count;
}

// A normalization sums squares, and its gradient sums products. These products need no memory then.
void GroupMaker::compute_products_in_sums() {
  std::vector<RowInstruction>& instructions = group_.program.instructions;
  for (std::size_t index = 0; index < instructions.size(); ++index) {
    RowInstruction& sum = instructions[index];
    const RowOperand& summed = sum.operands[0];
    if (sum.kind == RowInstruction::Kind::elements || summed.kind != RowOperand::Kind::result) continue;
    const std::size_t maker = summed.index;
    const RowInstruction& product = instructions[maker];
    const bool is_product =
        product.kind == RowInstruction::Kind::elements &&
        (product.function == ElementFunction::square || product.function == ElementFunction::multiply) &&
        is_wide(product.operands[0]) && (product.function == ElementFunction::square || is_wide(product.operands[1]));
    // With another reader, or as an output, the product would be computed twice.
    if (!is_product || product.output || reader_count(maker) != 1) continue;
    sum.function = product.function;
    std::copy(std::begin(product.operands), std::end(product.operands), std::begin(sum.operands));
    remove(maker);
    // The sum lies one place before now.
    --index;
  }
}

// No other instruction reads it.
void GroupMaker::remove(std::size_t removed) {
  std::vector<RowInstruction>& instructions = group_.program.instructions;
  instructions.erase(instructions.begin() + static_cast<std::ptrdiff_t>(removed));
  for (RowInstruction& instruction : instructions) {
    for (RowOperand& operand : instruction.operands) {
      if (operand.kind == RowOperand::Kind::result && operand.index > removed) --operand.index;
    }
  }
}

// An input that nothing reads later lends its memory to an output, which saves an array of the plan.
void GroupMaker::choose_overwritable_input() {
  std::vector<RowInstruction>& instructions = group_.program.instructions;
  // After the last instruction that reads the memory of each input.
  const auto last_reader = [&](ArrayId root) {
    std::size_t last = 0;
    for (std::size_t index = 0; index < instructions.size(); ++index) {
      for (std::size_t i = 0; i < operand_count(instructions[index].function); ++i) {
        const RowOperand& operand = instructions[index].operands[i];
        if (operand.kind == RowOperand::Kind::input && graph_.memory_of(group_.inputs[operand.index]) == root) {
          last = index;
        }
      }
    }
    return last;
  };
  for (std::size_t input = 0; input < group_.inputs.size(); ++input) {
    if (group_.program.inputs[input] != RowArray::wide || is_needed_later_(group_.inputs[input])) continue;
    const std::size_t last = last_reader(graph_.memory_of(group_.inputs[input]));
    // The last reader may write there itself: an element is read before it is written.
    for (std::size_t index = last; index < instructions.size(); ++index) {
      const std::optional<std::size_t> output = instructions[index].output;
      const bool is_like_input =
          output && instructions[index].kind == RowInstruction::Kind::elements && instructions[index].is_wide;
      if (!is_like_input) continue;
      // A plan gives the place of an input to output 0.
      for (RowInstruction& one : instructions) {
        if (one.output == 0U) one.output = *output;
      }
      std::swap(group_.outputs[0], group_.outputs[*output]);
      instructions[index].output = 0;
      group_.overwritable_input = input;
      return;
    }
  }
}

RowGroup GroupMaker::make() {
  // Members first, as they are in the graph; then products are joined with their sums, which renumbers instructions.
  // Only after that are last readers known.
  group_.program.width = rows_.width();
  for (const std::size_t member : members_) add_member(member);
  compute_products_in_sums();
  choose_overwritable_input();
  return std::move(group_);
}

}  // namespace

RowGroup make_row_group(const Graph& graph, const Rows& rows, const std::vector<std::size_t>& members,
                        const std::function<bool(ArrayId)>& is_needed_later) {
  return GroupMaker(graph, rows, members, is_needed_later).make();
}

}  // namespace holdfast
