// Row programs allocate nothing while they run, not even at first.

#include <gtest/gtest.h>

#include <vector>

#include "compute/row_program.h"
#include "unit/train_allocations/support/counted_allocations.h"

namespace holdfast::compute {
namespace {

TEST(RowProgramAllocations, DoNotHappenInTheFirstRun) {
  // x - mean(x), for rows of several blocks.
  constexpr std::int64_t kRowsOfBlocks = 500;
  RowProgram program = {.width = 64, .inputs = {RowArray::wide}};
  program.instructions.push_back(
      {.kind = RowInstruction::Kind::reduction, .reduction = ReductionKind::mean, .is_wide = false});
  program.instructions.push_back(
      {.function = ElementFunction::subtract, .operands = {{}, {RowOperand::Kind::result, 0}, {}}, .output = 0});
  const auto operation = make_row_operation(program, kRowsOfBlocks);
  const std::vector<float> numbers(kRowsOfBlocks * 64, 2.5F);
  std::vector<float> differences(numbers.size(), 1);
  const float* const input = numbers.data();
  float* const output = differences.data();

  CountedAllocations counted;
  operation->run({&input, 1}, {&output, 1});
  const AllocationCounts counts = counted.stop();

  EXPECT_EQ(counts.own, 0) << CountedAllocations::callers();
  EXPECT_EQ(differences, std::vector<float>(numbers.size(), 0));
}

}  // namespace
}  // namespace holdfast::compute
