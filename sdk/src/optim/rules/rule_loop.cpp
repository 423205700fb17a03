// A formula is evaluated with symbols once, which gives a tree of functions for each of its results. A program whose
// results are the same trees computes the same operations on the same numbers, and so may run as the loop of the
// formula. A rule that an application changes is another tree and stays a program. docs/decisions/optimizers.md

#include "optim/rules/rule_loop.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "compute/cpu/kernels/vector_kernels.h"
#include "holdfast/base/error.h"

namespace holdfast {
namespace {

using compute::ElementFunction;
using compute::ElementOperand;
using compute::ElementProgram;
using compute::RuleFormula;
using compute::UpdateRule;

struct Node {
  enum class Kind { input, number, kept, function };

  Kind kind = Kind::input;
  int index = 0;  // of the input or number
  ElementFunction function = ElementFunction::copy;
  std::vector<std::shared_ptr<const Node>> operands{};
};

// What a formula is evaluated with in place of a float.
struct Symbol {
  std::shared_ptr<const Node> node;
};

Symbol leaf(Node::Kind kind, int index) {
  return {std::make_shared<const Node>(Node{.kind = kind, .index = index})};
}

Symbol call(ElementFunction function, std::vector<std::shared_ptr<const Node>> operands) {
  return {std::make_shared<const Node>(
      Node{.kind = Node::Kind::function, .function = function, .operands = std::move(operands)})};
}

Symbol operator+(const Symbol& a, const Symbol& b) {
  return call(ElementFunction::add, {a.node, b.node});
}
Symbol operator-(const Symbol& a, const Symbol& b) {
  return call(ElementFunction::subtract, {a.node, b.node});
}
Symbol operator*(const Symbol& a, const Symbol& b) {
  return call(ElementFunction::multiply, {a.node, b.node});
}
Symbol operator/(const Symbol& a, const Symbol& b) {
  return call(ElementFunction::divide, {a.node, b.node});
}

// The functions of a formula.
struct SymbolFunctions {
  static Symbol square(const Symbol& x) { return call(ElementFunction::square, {x.node}); }
  static Symbol square_root(const Symbol& x) { return call(ElementFunction::square_root, {x.node}); }
  static Symbol sign(const Symbol& x) { return call(ElementFunction::sign, {x.node}); }
  static Symbol absolute(const Symbol& x) { return call(ElementFunction::absolute, {x.node}); }
  static Symbol maximum(const Symbol& a, const Symbol& b) { return call(ElementFunction::maximum, {a.node, b.node}); }
  // Without a symbol nothing decays. In the loop the parameter is multiplied by 1 then, which changes no bit.
  static Symbol decayed(const Symbol& parameter, const Symbol& kept) {
    return kept.node == nullptr ? parameter : parameter * kept;
  }
};

// A program of a rule, with weight decay or without: two patterns for each rule.
struct Pattern {
  UpdateRule rule;
  int numbers;
  std::vector<Symbol> results;  // the parameter, then the slots
};

template <UpdateRule kRule>
void append_patterns(std::vector<Pattern>& patterns) {
  using Formula = RuleFormula<kRule>;
  Symbol numbers[compute::kMostRuleNumbers];
  for (int i = 0; i < Formula::kNumbers; ++i) numbers[i] = leaf(Node::Kind::number, i);
  for (const Symbol& kept : {Symbol(), leaf(Node::Kind::kept, 0)}) {
    // A program has the parameter, the gradient and the slots as inputs, in this order.
    compute::RuleElement<Symbol> of = {leaf(Node::Kind::input, 0), leaf(Node::Kind::input, 1), {}};
    for (int slot = 0; slot < Formula::kSlots; ++slot) of.slots[slot] = leaf(Node::Kind::input, 2 + slot);
    Formula::template update<SymbolFunctions>(of, numbers, kept);
    Pattern& pattern = patterns.emplace_back(Pattern{kRule, Formula::kNumbers, {of.parameter}});
    pattern.results.insert(pattern.results.end(), of.slots, of.slots + Formula::kSlots);
  }
}

const std::vector<Pattern>& all_patterns() {
  // Made at the first call. Several threads may be in it, and the language lets one of them make it.
  static const std::vector<Pattern> patterns = [] {
    std::vector<Pattern> made;
    append_patterns<UpdateRule::rmsprop>(made);
    append_patterns<UpdateRule::rmsprop_momentum>(made);
    append_patterns<UpdateRule::rmsprop_centered>(made);
    append_patterns<UpdateRule::rmsprop_both>(made);
    append_patterns<UpdateRule::adagrad>(made);
    append_patterns<UpdateRule::adadelta>(made);
    append_patterns<UpdateRule::adamax>(made);
    append_patterns<UpdateRule::nadam>(made);
    append_patterns<UpdateRule::lion>(made);
    return made;
  }();
  return patterns;
}

// Compares a program with one pattern, and notes which constant each number is.
class Comparison {
 public:
  Comparison(const ElementProgram& program, const Pattern& pattern) : program_(program), pattern_(pattern) {
    loop_.rule = pattern.rule;
    loop_.numbers.fill(-1);
  }

  // Goes down along the pattern, which is small. So a program of any length is compared in few steps.
  std::optional<RuleLoop> run() {
    // A program gives the parameter and the slots, and takes the gradient as well: one input more than it has results.
    if (program_.output_count != pattern_.results.size() || program_.input_count != pattern_.results.size() + 1) {
      return std::nullopt;
    }
    for (std::size_t result = 0; result < pattern_.results.size(); ++result) {
      const ElementOperand output = {ElementOperand::Kind::result, program_.outputs[result]};
      if (!is_same(output, *pattern_.results[result].node)) return std::nullopt;
    }
    return loop_;
  }

 private:
  bool is_same(const ElementOperand& operand, const Node& node) {
    switch (node.kind) {
      case Node::Kind::input:
        return operand.kind == ElementOperand::Kind::input && operand.index == node.index;
      case Node::Kind::number:
        return is_constant(operand, loop_.numbers[static_cast<std::size_t>(node.index)]);
      case Node::Kind::kept:
        return is_constant(operand, loop_.kept);
      case Node::Kind::function:
        break;
    }
    // A function of the formula is an instruction of the program.
    if (operand.kind != ElementOperand::Kind::result) return false;
    const compute::ElementInstruction& instruction = program_.instructions[operand.index];
    if (instruction.function != node.function) return false;
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
      if (!is_same(instruction.operands[i], *node.operands[i])) return false;
    }
    return true;
  }

  // Each time it stands in a formula, a number is the same constant.
  static bool is_constant(const ElementOperand& operand, int& known) {
    if (operand.kind != ElementOperand::Kind::constant) return false;
    if (known < 0) known = operand.index;
    return known == operand.index;
  }

  const ElementProgram& program_;
  const Pattern& pattern_;
  RuleLoop loop_;
};

}  // namespace

std::optional<RuleLoop> find_rule_loop(const ElementProgram& program) {
  for (const Pattern& pattern : all_patterns()) {
    if (std::optional<RuleLoop> loop = Comparison(program, pattern).run()) return loop;
  }
  return std::nullopt;
}

void run_rule_loop(const RuleLoop& loop, const ElementProgram& program, const UpdateArrays& arrays) {
  HOLDFAST_ASSERT(arrays.slots.size() + 1 == program.output_count && arrays.slots.size() <= compute::kMostRuleSlots);
  const std::size_t size = arrays.parameters.size();
  HOLDFAST_ASSERT(arrays.gradients.size() == size);
  HOLDFAST_ASSERT(std::ranges::all_of(arrays.slots, [&](std::span<float> slot) { return slot.size() == size; }));
  // Constants are read for each update, since a rate changes with the step. Numbers that a form of the rule does not
  // have stay 0 and are not read.
  std::array<float, compute::kMostRuleNumbers> numbers{};
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (loop.numbers[i] >= 0) numbers[i] = program.constants[loop.numbers[i]];
  }
  const float kept = loop.kept >= 0 ? program.constants[loop.kept] : 1.0F;
  std::array<float*, compute::kMostRuleSlots> slots{};
  std::ranges::transform(arrays.slots, slots.begin(), [](std::span<float> slot) { return slot.data(); });
  compute::vector_kernels().rules[static_cast<std::size_t>(loop.rule)](
      numbers.data(), kept, static_cast<std::int64_t>(size), arrays.gradients.data(), arrays.parameters.data(),
      slots.data());
}

}  // namespace holdfast
