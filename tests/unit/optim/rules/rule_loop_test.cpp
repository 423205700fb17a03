// Loops of rules have the bits of the programs that they replace.

#include "optim/rules/rule_loop.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "holdfast/holdfast.h"
#include "optim/update_pass.h"

namespace holdfast {
namespace {

using compute::ElementProgram;

ElementProgram program_of(const Optimizer& optimizer, std::int64_t step = 1) {
  return std::get<ElementProgram>(optimizer.pass(step)->step);
}

struct Arrays {
  explicit Arrays(const Optimizer& optimizer, std::size_t count) : parameters(count), gradients(count) {
    for (std::size_t i = 0; i < count; ++i) {
      Random random(3, Purpose::user, 0, i);
      parameters[i] = random.normal();
      gradients[i] = random.normal();
    }
    // What no update may lose: zeros of both signs, a number without a normal square, NaN.
    const float special[] = {0.0F, -0.0F, 1e-30F, std::numeric_limits<float>::infinity(), std::nanf("")};
    for (std::size_t i = 0; i < std::size(special) && i < count; ++i) gradients[i] = special[i];
    slots.assign(optimizer.slot_names().size(), std::vector<float>(count));
  }

  UpdateArrays views() {
    spans.assign(slots.begin(), slots.end());
    return {parameters, gradients, spans};
  }
  std::vector<std::uint32_t> bits() const {
    std::vector<std::uint32_t> all;
    const auto add = [&](const std::vector<float>& floats) {
      for (const float value : floats) all.push_back(std::isnan(value) ? 1 : std::bit_cast<std::uint32_t>(value));
    };
    add(parameters);
    for (const auto& slot : slots) add(slot);
    return all;
  }

  std::vector<float> parameters;
  std::vector<float> gradients;
  std::vector<std::vector<float>> slots;
  std::vector<std::span<float>> spans;
};

std::vector<std::shared_ptr<const Optimizer>> with_loops() {
  return {std::make_shared<RMSprop>(),
          std::make_shared<RMSprop>(RMSpropOptions{.rho = 0.5F, .weight_decay = 0.25F}),
          std::make_shared<RMSprop>(RMSpropOptions{.momentum = 0.5F}),
          std::make_shared<RMSprop>(RMSpropOptions{.centered = true, .weight_decay = 0.25F}),
          std::make_shared<RMSprop>(RMSpropOptions{.momentum = 0.5F, .centered = true}),
          std::make_shared<Adagrad>(),
          std::make_shared<Adagrad>(AdagradOptions{.weight_decay = 0.25F}),
          std::make_shared<Adadelta>(),
          std::make_shared<Adadelta>(AdadeltaOptions{.rho = 0.75F, .weight_decay = 0.25F}),
          std::make_shared<Adamax>(),
          std::make_shared<Adamax>(AdamaxOptions{.weight_decay = 0.25F}),
          std::make_shared<Nadam>(),
          std::make_shared<Nadam>(NadamOptions{.weight_decay = 0.25F}),
          std::make_shared<Lion>(),
          std::make_shared<Lion>(LionOptions{.beta_1 = 0.5F, .beta_2 = 0.5F, .weight_decay = 0.25F})};
}

TEST(RuleLoop, IsFoundForEachRule) {
  for (const auto& optimizer : with_loops()) {
    EXPECT_TRUE(find_rule_loop(program_of(*optimizer))) << optimizer->configuration();
  }
}

TEST(RuleLoop, HasTheBitsOfTheProgram) {
  for (const auto& optimizer : with_loops()) {
    for (const std::size_t count : {1U, 7U, 500U}) {
      SCOPED_TRACE(optimizer->configuration());
      Arrays by_loop(*optimizer, count), by_program(*optimizer, count);
      for (std::int64_t step = 1; step <= 4; ++step) {
        const ElementProgram program = program_of(*optimizer, step);
        const auto loop = find_rule_loop(program_of(*optimizer));
        ASSERT_TRUE(loop);

        run_rule_loop(*loop, program, by_loop.views());
        run_pass({program}, by_program.views());

        EXPECT_EQ(by_loop.bits(), by_program.bits());
      }
    }
  }
}

// A formula with other operations stays a program, however similar it is.
TEST(RuleLoop, IsNotFoundForOtherPrograms) {
  EXPECT_FALSE(find_rule_loop(program_of(Ftrl())));
  EXPECT_FALSE(find_rule_loop(program_of(Adam({.amsgrad = true}))));
  ElementProgram changed = program_of(Adagrad());
  std::swap(changed.instructions[1].operands[0], changed.instructions[1].operands[1]);
  EXPECT_FALSE(find_rule_loop(changed));
}

}  // namespace
}  // namespace holdfast
