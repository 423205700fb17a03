#include "compute/cpu/row_steps.h"

#include <gtest/gtest.h>

namespace holdfast::compute {
namespace {

using enum ElementFunction;
using Instructions = std::vector<RowInstruction>;

RowOperand row_input(std::size_t index) {
  return {RowOperand::Kind::input, index};
}
RowOperand row_result(std::size_t index) {
  return {RowOperand::Kind::result, index};
}

RowInstruction of_elements(ElementFunction function, RowOperand a, RowOperand b = {}) {
  return {.function = function, .operands = {a, b}};
}
RowInstruction sum_of(ElementFunction function, RowOperand a, RowOperand b = {}) {
  return {.kind = RowInstruction::Kind::reduction, .function = function, .operands = {a, b}, .is_wide = false};
}

// Two wide inputs.
std::vector<RowStep> steps_of(Instructions instructions) {
  instructions.back().output = 0;
  return find_row_steps(
      {.width = 40, .inputs = {RowArray::wide, RowArray::wide}, .instructions = std::move(instructions)});
}

using Places = std::vector<std::size_t>;

TEST(RowSteps, JoinFunctionsAndTheSumOfTheirResult) {
  const auto steps =
      steps_of({of_elements(subtract, row_input(0), row_input(1)), sum_of(square, row_result(0)),
                of_elements(multiply, row_result(0), row_result(1)), of_elements(multiply, row_input(1), row_result(2)),
                of_elements(add, row_result(3), row_input(1))});

  ASSERT_EQ(steps.size(), 2U);
  EXPECT_EQ(steps[0].instructions, Places{0});
  EXPECT_EQ(steps[0].reduction, 1U);
  EXPECT_EQ(steps[0].sum, ChainSum::squares);
  EXPECT_TRUE(steps[0].is_kept[0]);
  EXPECT_EQ(steps[1].instructions, (Places{2, 3, 4}));
  EXPECT_FALSE(steps[1].is_kept[0]);
  EXPECT_FALSE(steps[1].is_kept[1]);
}

TEST(RowSteps, TakeTheSumOfNegativeResults) {
  const auto steps = steps_of({of_elements(add, row_input(0), row_input(1)), of_elements(negative, row_result(0)),
                               sum_of(copy, row_result(1)), of_elements(add, row_result(0), row_result(2))});

  ASSERT_EQ(steps.size(), 2U);
  EXPECT_EQ(steps[0].sum, ChainSum::negatives);
  EXPECT_EQ(steps[0].reduction, 2U);
}

TEST(RowSteps, LeaveOtherFunctionsAndReductionsAlone) {
  const auto steps = steps_of({of_elements(add, row_input(0), row_input(1)), of_elements(tanh, row_result(0)),
                               sum_of(copy, row_result(1)), of_elements(subtract, row_input(0), row_result(1))});

  EXPECT_EQ(steps.size(), 4U);
  for (const RowStep& step : steps) EXPECT_FALSE(step.is_chain());
}

TEST(RowSteps, RunNothingAfterAnInputMayBeWrittenOver) {
  // Instruction 1 may write over input 0, which instruction 0 reads.
  Instructions instructions = {of_elements(add, row_input(0), row_input(1)), of_elements(tanh, row_input(0)),
                               of_elements(multiply, row_result(0), row_input(1)), sum_of(copy, row_result(2))};
  instructions[1].output = 1;

  const auto steps = steps_of(std::move(instructions));

  ASSERT_EQ(steps.size(), 3U);
  EXPECT_EQ(steps[0].instructions, Places{0});
}

}  // namespace
}  // namespace holdfast::compute
