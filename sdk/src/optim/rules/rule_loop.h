#pragma once

// One loop in place of an element program, where the program is the formula of a rule of update_rules.h: it computes
// the same bits, without a pass over a block for each operation.

#include <array>
#include <cstdint>
#include <optional>

#include "compute/arithmetic/update_rules.h"
#include "compute/array_kernels.h"
#include "optim/update_pass.h"

namespace holdfast {

struct RuleLoop {
  compute::UpdateRule rule = compute::UpdateRule::rmsprop;
  // The program's constant for each number of the rule; -1 for the factor of the parameter where nothing decays.
  std::array<int, compute::kMostRuleNumbers> numbers{};
  int kept = -1;
};

// Empty for a program that does not compute one of the rules. The numbers of a program may change afterwards, and its
// instructions may not.
std::optional<RuleLoop> find_rule_loop(const compute::ElementProgram& program);

// Does on the host what run_pass() does with the program, which find_rule_loop() was given.
void run_rule_loop(const RuleLoop& loop, const compute::ElementProgram& program, const UpdateArrays& arrays);

}  // namespace holdfast
