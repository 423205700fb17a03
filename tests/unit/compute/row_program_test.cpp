// Random row programs next to their instructions one by one, number by number.

#include "compute/row_program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "compute/arithmetic/lanes.h"
#include "compute/cpu/kernels/vector_kernels.h"
#include "holdfast/core/random.h"

namespace holdfast::compute {
namespace {

using Floats = std::vector<float>;
using RowKind = RowInstruction::Kind;

constexpr RowArray kRowInputs[] = {RowArray::wide, RowArray::narrow, RowArray::column, RowArray::number,
                                   RowArray::wide};

std::int64_t numbers_of(RowArray array, std::int64_t rows, std::int64_t width) {
  return array == RowArray::wide     ? rows * width
         : array == RowArray::narrow ? rows
         : array == RowArray::column ? width
                                     : 1;
}

struct RowCase {
  RowProgram program;
  std::int64_t rows = 1;
  std::size_t outputs = 0;
  std::vector<Floats> inputs{};
};

class RowCaseMaker {
 public:
  RowCaseMaker(std::uint64_t number, std::int64_t width, std::int64_t rows) : random_(number, Purpose::user, 0, 0) {
    made_.program.width = width;
    made_.rows = rows;
  }

  RowCase make() {
    for (const RowArray array : kRowInputs) {
      made_.program.inputs.push_back(array);
      Floats numbers(static_cast<std::size_t>(numbers_of(array, made_.rows, made_.program.width)));
      for (float& number : numbers) number = random_.below(50) == 0 ? -0.0F : random_.normal();
      made_.inputs.push_back(std::move(numbers));
    }
    made_.program.constants = {0.5F, -2.0F};
    const std::uint64_t instructions = 1 + random_.below(12);
    for (std::uint64_t i = 0; i < instructions; ++i) add_instruction();
    // What nothing reads is an output, too, so that each result counts.
    for (std::size_t i = 0; i < made_.program.instructions.size(); ++i) {
      RowInstruction& instruction = made_.program.instructions[i];
      const bool is_last = i + 1 == made_.program.instructions.size();
      if (instruction.kind == RowKind::column_sum || is_last || random_.below(4) == 0)
        instruction.output = made_.outputs++;
    }
    return std::move(made_);
  }

 private:
  bool is_wide(const RowOperand& operand) const {
    if (operand.kind == RowOperand::Kind::input) return kRowInputs[operand.index] == RowArray::wide;
    return operand.kind == RowOperand::Kind::result && made_.program.instructions[operand.index].is_wide;
  }
  bool is_narrow(const RowOperand& operand) const {
    if (operand.kind == RowOperand::Kind::constant) return true;
    if (operand.kind == RowOperand::Kind::result) return !made_.program.instructions[operand.index].is_wide;
    return kRowInputs[operand.index] == RowArray::narrow || kRowInputs[operand.index] == RowArray::number;
  }

  RowOperand any() {
    for (;;) {
      const std::size_t results = made_.program.instructions.size();
      // Mostly the newest result, as in the programs of layers.
      if (results > 0 && random_.below(2) == 0) {
        const std::size_t index = random_.below(3) == 0 ? random_.below(results) : results - 1;
        if (made_.program.instructions[index].kind == RowKind::column_sum) continue;
        return {RowOperand::Kind::result, index};
      }
      if (random_.below(8) == 0) return {RowOperand::Kind::constant, random_.below(2)};
      return {RowOperand::Kind::input, random_.below(std::size(kRowInputs))};
    }
  }
  RowOperand any_wide() {
    RowOperand operand = any();
    while (!is_wide(operand)) operand = any();
    return operand;
  }
  RowOperand any_narrow() {
    RowOperand operand = any();
    while (!is_narrow(operand)) operand = any();
    return operand;
  }

  void add_instruction() {
    using enum ElementFunction;
    RowInstruction instruction;
    const std::uint64_t choice = random_.below(8);
    if (choice < 5) {
      constexpr ElementFunction kFunctions[] = {add,      subtract, multiply, add,    subtract,
                                                multiply, copy,     negative, maximum};
      instruction.function = kFunctions[random_.below(std::size(kFunctions))];
      instruction.is_wide = choice != 4;
      for (RowOperand& operand : instruction.operands) operand = instruction.is_wide ? any() : any_narrow();
    } else {
      constexpr ElementFunction kFunctions[] = {copy, square, multiply};
      instruction.function = kFunctions[random_.below(std::size(kFunctions))];
      instruction.operands[0] = any_wide();
      instruction.operands[1] = any_wide();
      instruction.kind = choice == 7 ? RowKind::column_sum : RowKind::reduction;
      constexpr ReductionKind kKinds[] = {ReductionKind::sum, ReductionKind::mean, ReductionKind::maximum};
      if (choice != 7) instruction.reduction = kKinds[random_.below(std::size(kKinds))];
      instruction.is_wide = choice == 7;
    }
    made_.program.instructions.push_back(instruction);
  }

  Random random_;
  RowCase made_;
};

// Instruction after instruction over all rows.
std::vector<Floats> one_by_one(const RowCase& of) {
  const RowProgram& program = of.program;
  std::vector<Floats> results;
  std::vector<Floats> outputs(of.outputs);
  for (const RowInstruction& instruction : program.instructions) {
    const auto number = [&](std::size_t operand, std::int64_t row, std::int64_t column) {
      const RowOperand& one = instruction.operands[operand];
      if (one.kind == RowOperand::Kind::constant) return program.constants[one.index];
      const bool is_input = one.kind == RowOperand::Kind::input;
      const Floats& floats = is_input ? of.inputs[one.index] : results[one.index];
      const RowArray array = is_input                                  ? program.inputs[one.index]
                             : program.instructions[one.index].is_wide ? RowArray::wide
                                                                       : RowArray::narrow;
      return floats[static_cast<std::size_t>(array == RowArray::wide     ? row * program.width + column
                                             : array == RowArray::narrow ? row
                                             : array == RowArray::column ? column
                                                                         : 0)];
    };
    const auto value = [&](std::int64_t row, std::int64_t column) {
      float numbers[3];
      ElementLane lanes[3];
      for (std::size_t i = 0; i < operand_count(instruction.function); ++i) {
        numbers[i] = number(i, row, column);
        lanes[i].values = &numbers[i];
      }
      float result = 0;
      vector_kernels().run_instruction(instruction.function, lanes, 1, &result);
      return result;
    };
    Floats result;
    if (instruction.kind == RowKind::elements) {
      for (std::int64_t row = 0; row < of.rows; ++row) {
        for (std::int64_t c = 0; c < (instruction.is_wide ? program.width : 1); ++c) result.push_back(value(row, c));
      }
    } else if (instruction.kind == RowKind::reduction) {
      for (std::int64_t row = 0; row < of.rows; ++row) {
        const auto in_row = [&](std::int64_t c) { return value(row, c); };
        const double sum = sum_of_row(program.width, in_row);
        const double divisor = instruction.reduction == ReductionKind::mean ? static_cast<double>(program.width) : 1.0;
        result.push_back(instruction.reduction == ReductionKind::maximum ? largest_of_row(program.width, in_row)
                                                                         : static_cast<float>(sum / divisor));
      }
    } else {
      for (std::int64_t c = 0; c < program.width; ++c) {
        double sum = 0;
        for (std::int64_t row = 0; row < of.rows; ++row) sum += value(row, c);
        result.push_back(static_cast<float>(sum));
      }
    }
    if (instruction.output) outputs[*instruction.output] = result;
    results.push_back(std::move(result));
  }
  return outputs;
}

std::vector<Floats> row_by_row(const RowCase& of, RowOperation& operation) {
  std::vector<const float*> inputs;
  for (const Floats& input : of.inputs) inputs.push_back(input.data());
  std::vector<Floats> outputs(of.outputs);
  std::vector<float*> places(of.outputs);
  for (const RowInstruction& instruction : of.program.instructions) {
    if (!instruction.output) continue;
    const RowArray array = instruction.kind == RowKind::column_sum ? RowArray::column
                           : instruction.is_wide                   ? RowArray::wide
                                                                   : RowArray::narrow;
    Floats& output = outputs[*instruction.output];
    output.assign(static_cast<std::size_t>(numbers_of(array, of.rows, of.program.width)), NAN);
    places[*instruction.output] = output.data();
  }
  operation.run(inputs, places);
  return outputs;
}

// With one pattern for all NaNs: which of two NaNs a sum keeps is the compiler's choice.
std::vector<std::uint32_t> bits_of_arrays(const std::vector<Floats>& arrays) {
  std::vector<std::uint32_t> bits;
  for (const Floats& array : arrays) {
    for (const float value : array) {
      bits.push_back(std::isnan(value) ? 0x7FC00000 : std::bit_cast<std::uint32_t>(value));
    }
  }
  return bits;
}

class RowPrograms : public testing::Test {
 protected:
  ~RowPrograms() override { force_instruction_set(std::nullopt); }
};

TEST_F(RowPrograms, HaveTheBitsOfInstructionsOneByOneOnAllInstructionSets) {
  // Around the widths of vectors and lanes, with many rows in a block and with one.
  constexpr std::int64_t kWidths[] = {2, 7, 15, 16, 17, 32, 40, 64, 100, 1024, 2050};
  for (std::uint64_t number = 0; number < 300; ++number) {
    const std::int64_t width = kWidths[number % std::size(kWidths)];
    const std::int64_t rows =
        width > 500 ? 1 + static_cast<std::int64_t>(number % 6) : 1 + static_cast<std::int64_t>(number * 7 % 90);
    const RowCase made = RowCaseMaker(number, width, rows).make();
    force_instruction_set(InstructionSet::baseline);
    const auto expected = bits_of_arrays(one_by_one(made));
    const auto operation = make_row_operation(made.program, rows);
    for (const InstructionSet set : supported_instruction_sets()) {
      force_instruction_set(set);
      // Twice, since sums over rows must begin anew.
      for (int run = 0; run < 2; ++run) {
        const auto actual = bits_of_arrays(row_by_row(made, *operation));
        ASSERT_EQ(actual.size(), expected.size());
        const auto differing = std::mismatch(actual.begin(), actual.end(), expected.begin()).first;
        EXPECT_EQ(differing - actual.begin(), std::ssize(actual))
            << name_of(set) << ", program " << number << ", rows " << rows << " of " << width;
      }
    }
  }
}

TEST_F(RowPrograms, TakeAnOutputInThePlaceOfAnInput) {
  // x - mean(x) over x.
  RowProgram program = {.width = 40, .inputs = {RowArray::wide}};
  program.instructions.push_back(
      RowInstruction{.kind = RowKind::reduction, .reduction = ReductionKind::mean, .is_wide = false});
  program.instructions.push_back(RowInstruction{
      .function = ElementFunction::subtract, .operands = {{}, {RowOperand::Kind::result, 0}}, .output = 0});
  constexpr std::int64_t kRows = 100;
  Floats numbers;
  Random random(1, Purpose::user, 0, 0);
  for (std::int64_t i = 0; i < kRows * program.width; ++i) numbers.push_back(random.normal());
  const RowCase made = {.program = program, .rows = kRows, .outputs = 1, .inputs = {numbers}};
  const auto operation = make_row_operation(program, kRows);

  const float* const input = numbers.data();
  float* const output = numbers.data();
  operation->run({&input, 1}, {&output, 1});

  EXPECT_EQ(bits_of_arrays({numbers}), bits_of_arrays(one_by_one(made)));
}

TEST_F(RowPrograms, TakeNoRows) {
  RowProgram program = {.width = 40, .inputs = {RowArray::wide}};
  program.instructions.push_back(RowInstruction{.kind = RowKind::column_sum, .output = 0});
  Floats sums(40, NAN);
  const float* const input = nullptr;
  float* const output = sums.data();

  make_row_operation(program, 0)->run({&input, 1}, {&output, 1});

  EXPECT_EQ(sums, Floats(40, 0.0F));
}

}  // namespace
}  // namespace holdfast::compute
