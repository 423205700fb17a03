#include "compute/array_kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "compute/backend.h"
#include "holdfast/base/error.h"

namespace holdfast::compute {
namespace {

// A program of one function of two inputs, over rows longer than a block of the host's loops.
TEST(ArrayKernels, ElementsOfLongRowsAndSingleNumbersAreComputedAlike) {
  constexpr std::int64_t kRow = 1000;
  const auto backend = make_cpu_backend(1);
  ElementProgram program;
  program.input_count = 2;
  program.instruction_count = 1;
  program.output_count = 1;
  program.instructions[0] = {ElementFunction::subtract,
                             {{ElementOperand::Kind::input, 0}, {ElementOperand::Kind::input, 1}}};
  // a is [3, 1000], every second one of 2,000; b is one number for each row.
  const ElementShape shape = {.axes = 2, .extents = {3, kRow}, .strides = {{2 * kRow, 2}, {1, 0}}};
  std::vector<float> a(3 * 2 * kRow), result(3 * kRow);
  std::iota(a.begin(), a.end(), 0.0F);
  const std::vector<float> b = {1, 2, 3};
  const float* const inputs[] = {a.data(), b.data()};
  float* const output = result.data();

  backend->array_kernels().elements(program, shape, inputs, {&output, 1});

  for (std::size_t row = 0; row < 3; ++row) {
    for (std::size_t i = 0; i < kRow; ++i) ASSERT_EQ(result[row * kRow + i], a[(row * kRow + i) * 2] - b[row]);
  }
}

// The first output lies where an input does that the last instruction still reads.
TEST(ArrayKernels, OutputsMayLieWhereInputsDo) {
  constexpr std::int64_t kCount = 1000;
  const auto backend = make_cpu_backend(1);
  ElementProgram program;
  program.input_count = 2;
  program.instruction_count = program.output_count = 2;
  program.instructions[0] = {ElementFunction::add,
                             {{ElementOperand::Kind::input, 0}, {ElementOperand::Kind::input, 1}}};
  program.instructions[1] = {ElementFunction::multiply,
                             {{ElementOperand::Kind::input, 0}, {ElementOperand::Kind::result, 0}}};
  program.outputs[0] = 0;
  program.outputs[1] = 1;
  std::vector<float> a(kCount), b(kCount);
  std::iota(a.begin(), a.end(), 0.0F);
  std::iota(b.begin(), b.end(), 1.0F);
  const float* const inputs[] = {a.data(), b.data()};
  float* const outputs[] = {a.data(), b.data()};

  backend->array_kernels().elements(program, {.axes = 1, .extents = {kCount}, .strides = {{1}, {1}}}, inputs, outputs);

  for (std::size_t i = 0; i < kCount; ++i) {
    const auto n = static_cast<float>(i);
    ASSERT_EQ(a[i], n + (n + 1));
    ASSERT_EQ(b[i], n * (n + (n + 1)));
  }
}

TEST(ArrayKernels, FunctionsHaveNamesThatReadBack) {
  for (int i = 0; i <= static_cast<int>(ElementFunction::select); ++i) {
    const auto function = static_cast<ElementFunction>(i);
    EXPECT_EQ(element_function_from_name(name_of(function)), function);
  }
  EXPECT_EQ(name_of(ElementFunction::select), "select");
  EXPECT_EQ(operand_count(ElementFunction::sign), 1U);
  EXPECT_EQ(operand_count(ElementFunction::add), 2U);
  EXPECT_EQ(operand_count(ElementFunction::select), 3U);
  EXPECT_THROW(element_function_from_name("sine"), Error);
}

TEST(ArrayKernels, TheLargestOfANaNIsANaN) {
  const auto backend = make_cpu_backend(1);
  for (const std::vector<float>& values : {std::vector<float>{NAN, 1, 2}, {1, NAN, 2}, {1, 2, NAN}}) {
    float result = 0;

    backend->array_kernels().reduce({.kind = ReductionKind::maximum, .reduced = 3}, values.data(), &result);

    EXPECT_TRUE(std::isnan(result));
  }
}

TEST(ArrayKernels, NothingIsDoneForNoElements) {
  const auto backend = make_cpu_backend(1);
  float* const output = nullptr;
  const float* const input = nullptr;
  ElementProgram program;
  program.input_count = program.instruction_count = program.output_count = 1;

  backend->array_kernels().elements(program, {.axes = 2, .extents = {3, 0}}, {&input, 1}, {&output, 1});
  backend->array_kernels().copy({.axes = 2, .extents = {0, 3}}, nullptr, nullptr);
}

}  // namespace
}  // namespace holdfast::compute
