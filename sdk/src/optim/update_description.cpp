// The graph of a description has a node for each function. Each becomes an instruction, in the order of the graph, and
// equal instructions are computed once. Nothing else is simplified: the formula that was written fixes the bits.
// docs/decisions/optimizers.md

#include "optim/update_description.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <unordered_map>

#include "holdfast/base/error.h"
#include "nn/graph/operation.h"
#include "nn/graph/value_node.h"

namespace holdfast {
namespace {

using compute::ElementInstruction;
using compute::ElementOperand;
using compute::ElementProgram;

bool are_equal(const ElementOperand& a, const ElementOperand& b) {
  return a.kind == b.kind && a.index == b.index;
}

class UpdateCompiler {
 public:
  explicit UpdateCompiler(const UpdateDescription& description) : description_(description) {}

  ElementProgram run();

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(ErrorCode::invalid_argument, fmt::format("optimizer {}: {}", description_.optimizer, what));
  }
  void require_room(std::size_t count, std::size_t most, const char* what) const;
  ElementOperand constant(float value);
  ElementOperand instruction(const ElementInstruction& one);
  ElementOperand compile(const ValueNode& node);

  const UpdateDescription& description_;
  ElementProgram program_{};
  std::unordered_map<const ValueNode*, ElementOperand> operands_;
};

// The limits are sizes of arrays in ElementProgram, which has a fixed size because kernels of devices take it by value.
void UpdateCompiler::require_room(std::size_t count, std::size_t most, const char* what) const {
  if (count <= most) return;
  refuse(fmt::format("its update has {} {}, and one pass takes {}; derive it from Optimizer and write update() instead",
                     count, what, most));
}

ElementOperand UpdateCompiler::constant(float value) {
  // Numbers of a step come first, and another step gives them other values, so they are never shared.
  std::size_t place = description_.numbers.size();
  // Bits are compared: 0 and -0 must stay two constants, and a NaN must equal itself.
  while (place < program_.constant_count &&
         std::bit_cast<std::uint32_t>(program_.constants[place]) != std::bit_cast<std::uint32_t>(value)) {
    ++place;
  }
  require_room(place + 1, ElementProgram::kMaximumConstants, "numbers and constants");
  if (place == program_.constant_count) program_.constants[program_.constant_count++] = value;
  return {ElementOperand::Kind::constant, static_cast<std::uint8_t>(place)};
}

ElementOperand UpdateCompiler::instruction(const ElementInstruction& one) {
  // The operands that a function does not take are left out of the comparison, since nothing reads them.
  const std::size_t operands = compute::operand_count(one.function);
  std::size_t place = 0;
  while (place < program_.instruction_count &&
         !(program_.instructions[place].function == one.function &&
           std::equal(one.operands, one.operands + operands, program_.instructions[place].operands, are_equal))) {
    ++place;
  }
  require_room(place + 1, ElementProgram::kMaximumInstructions, "operations");
  if (place == program_.instruction_count) program_.instructions[program_.instruction_count++] = one;
  return {ElementOperand::Kind::result, static_cast<std::uint8_t>(place)};
}

// Each argument of a function is a constant of the operation or its next input. Inputs were compiled before, because
// nodes_in_order() gives a node after those that it reads.
ElementOperand UpdateCompiler::compile(const ValueNode& node) {
  if (node.kind == ValueNode::Kind::input) {
    refuse("its update reads an input() of its own; it may read parameter, gradient, slots and numbers");
  }
  const std::string name = node.kind == ValueNode::Kind::operation ? node.operation->name() : node.name;
  const auto part = node.kind == ValueNode::Kind::operation ? node.operation->element_part() : std::nullopt;
  if (!part)
    refuse(fmt::format(
        "its update uses {}, which updates do not take (holdfast/optim/described_optimizer.h lists them)", name));
  ElementInstruction one{.function = part->function};
  std::size_t input = 0;
  for (std::size_t argument = 0; argument < part->constants.size(); ++argument) {
    const std::optional<float>& value = part->constants[argument];
    one.operands[argument] = value ? constant(*value) : operands_.at(node.inputs[input++]->node().get());
  }
  return instruction(one);
}

ElementProgram UpdateCompiler::run() {
  require_room(description_.arguments.size(), ElementProgram::kMaximumInputs, "arrays");
  require_room(description_.results.size(), ElementProgram::kMaximumOutputs, "arrays to write");
  require_room(description_.numbers.size(), ElementProgram::kMaximumConstants, "numbers");
  // Arguments and numbers get their places first, in the order of the description. The caller fills in the numbers of a
  // step by that order.
  for (const Value& argument : description_.arguments) {
    operands_[argument.node().get()] = {ElementOperand::Kind::input, program_.input_count++};
  }
  for (const Value& number : description_.numbers) {
    operands_[number.node().get()] = {ElementOperand::Kind::constant, program_.constant_count++};
  }
  const auto is_known = [this](const std::shared_ptr<const ValueNode>& node) { return operands_.contains(node.get()); };
  for (const auto& node : nodes_in_order(description_.results, is_known)) operands_[node.get()] = compile(*node);
  for (const Value& result : description_.results) {
    ElementOperand operand = operands_.at(result.node().get());
    // Outputs are results of instructions. What stays as it was is copied.
    if (operand.kind != ElementOperand::Kind::result) operand = instruction({.operands = {operand}});
    program_.outputs[program_.output_count++] = operand.index;
  }
  return program_;
}

}  // namespace

compute::ElementProgram compile_update(const UpdateDescription& description) {
  return UpdateCompiler(description).run();
}

Value update_argument(const std::string& name) {
  return input({1}, {.name = name});
}

}  // namespace holdfast
