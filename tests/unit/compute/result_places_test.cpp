#include "compute/result_places.h"

#include <gtest/gtest.h>

namespace holdfast::compute {
namespace {

using Kind = ElementOperand::Kind;

ElementInstruction of_results(ElementFunction function, std::uint8_t a, std::uint8_t b) {
  return {function, {{Kind::result, a}, {Kind::result, b}}};
}

// A chain of functions, each of the result before it, needs one place.
TEST(ResultPlaces, AreGivenToTheReaderOfAResultThatNobodyElseReads) {
  ElementProgram program;
  program.instruction_count = 3;
  program.output_count = 1;
  program.outputs[0] = 2;
  program.instructions[0] = {ElementFunction::square, {{Kind::input, 0}}};
  program.instructions[1] = {ElementFunction::square_root, {{Kind::result, 0}}};
  program.instructions[2] = {ElementFunction::negative, {{Kind::result, 1}}};

  const ResultPlaces places = result_places(program);

  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(places.of[i], 0) << i;
}

TEST(ResultPlaces, AreNotGivenAwayWhileTheirResultsAreReadLater) {
  ElementProgram program;
  program.instruction_count = 4;
  program.output_count = 2;
  program.outputs[0] = 1;
  program.outputs[1] = 3;
  program.instructions[0] = {ElementFunction::square, {{Kind::input, 0}}};
  program.instructions[1] = of_results(ElementFunction::add, 0, 0);  // an output, so it stays to the end
  program.instructions[2] = of_results(ElementFunction::multiply, 0, 1);
  program.instructions[3] = of_results(ElementFunction::subtract, 2, 1);

  const ResultPlaces places = result_places(program);

  EXPECT_NE(places.of[1], places.of[0]);  // 0 is read again by 2
  EXPECT_EQ(places.of[2], places.of[0]);
  EXPECT_NE(places.of[3], places.of[1]);
}

}  // namespace
}  // namespace holdfast::compute
