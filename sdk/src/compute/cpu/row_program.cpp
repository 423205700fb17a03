// A block of rows has enough numbers to make up for the dispatch of an instruction, and so few that its arrays lie in
// the first-level cache together, unless a row is long: each step reads what the one before has written. From 2,048 to
// 16,384 numbers were tried, and 3,072 were fastest (Intel Xeon, 2026-11-30). Loops over a block also ask the caches
// for the rows of the next one. By itself the machine finds a row once its first numbers are read. On two threads
// layer normalization takes 0.7 times as long with it as without.
// docs/decisions/plans.md

#include "compute/row_program.h"

#include <algorithm>

#include "compute/aligned_floats.h"
#include "compute/cpu/kernels/vector_kernels.h"
#include "compute/cpu/row_steps.h"
#include "holdfast/base/error.h"

namespace holdfast::compute {

namespace {

constexpr std::int64_t kBlockFloats = 3072;
constexpr std::size_t kMaximumOperands = 3;
constexpr std::size_t kNoPlace = static_cast<std::size_t>(-1);

class CpuRowOperation final : public RowOperation {
 public:
  CpuRowOperation(RowProgram program, std::int64_t rows);

  void run(std::span<const float* const> inputs, std::span<float* const> outputs) override;
  std::size_t own_bytes() const override {
    return floats_ * sizeof(float) + column_sums_.size() * sizeof(double) + places_.size() * sizeof(OperandRows);
  }

 private:
  std::size_t last_reader(std::size_t result, std::size_t step) const;
  void choose_places();
  void place_inputs(std::span<const float* const> inputs, std::int64_t first);
  void run_instruction(std::size_t index, std::int64_t rows, float* result);
  void find_ahead(std::span<const float* const> inputs, std::span<float* const> outputs, std::int64_t next);
  void run_chain(const RowStep& step, std::int64_t rows, std::size_t chain_number);
  float* place_result(std::size_t index, std::span<float* const> outputs, std::int64_t first);
  void run_elements(const RowInstruction& instruction, std::int64_t rows, float* result);
  void run_reduction(const RowInstruction& instruction, std::int64_t rows, float* result);
  void add_columns(std::size_t index, std::int64_t rows);
  const OperandRows& place_of(const RowOperand& operand) const;

  const RowProgram program_;
  const std::int64_t rows_;
  const std::vector<RowStep> steps_;
  const std::size_t chains_;  // of the steps
  const std::int64_t block_rows_;
  std::vector<std::size_t> offset_of_;  // by instruction: in the scratch memory; kNoPlace: in an output
  std::vector<std::size_t> sums_of_;    // by instruction: the first of its column sums
  std::size_t floats_ = 0;
  AlignedFloats scratch_;
  std::vector<double> column_sums_;
  // Where the block that runs has its inputs, results and constants, in this order.
  std::vector<OperandRows> places_;
  std::vector<float*> writable_;     // by instruction: its result
  std::vector<const float*> ahead_;  // rows of the next block
};

CpuRowOperation::CpuRowOperation(RowProgram program, std::int64_t rows)
    : program_(std::move(program)),
      rows_(rows),
      steps_(find_row_steps(program_)),
      chains_(static_cast<std::size_t>(std::ranges::count_if(steps_, &RowStep::is_chain))),
      block_rows_(std::clamp<std::int64_t>(kBlockFloats / program_.width, 1, std::max<std::int64_t>(rows, 1))) {
  choose_places();
  writable_.resize(program_.instructions.size());
  ahead_.reserve(program_.inputs.size() + program_.instructions.size());
  places_.resize(program_.inputs.size() + program_.instructions.size() + program_.constants.size());
  // Constants stay where they are. Inputs and results are placed anew for each block.
  for (std::size_t i = 0; i < program_.constants.size(); ++i) {
    places_[program_.inputs.size() + program_.instructions.size() + i].values = &program_.constants[i];
  }
}

// The last step that reads the result of an instruction; `step` if none does.
std::size_t CpuRowOperation::last_reader(std::size_t result, std::size_t step) const {
  std::size_t last = step;
  for (std::size_t later = step; later < steps_.size(); ++later) {
    const auto is_reader = [&](std::size_t instruction) {
      return reads_result(program_.instructions[instruction], result);
    };
    const std::vector<std::size_t>& instructions = steps_[later].instructions;
    if (std::any_of(instructions.begin(), instructions.end(), is_reader)) last = later;
    if (steps_[later].reduction && is_reader(*steps_[later].reduction)) last = later;
  }
  return last;
}

// Results share scratch memory where no step needs both.
void CpuRowOperation::choose_places() {
  constexpr std::size_t kLineFloats = 16;
  const auto rounded = [](std::int64_t floats) {
    return (static_cast<std::size_t>(floats) + kLineFloats - 1) / kLineFloats * kLineFloats;
  };
  const std::size_t wide = rounded(block_rows_ * program_.width);
  std::vector<std::size_t> free_from;  // by wide place: the first step that may take it
  offset_of_.assign(program_.instructions.size(), kNoPlace);
  sums_of_.assign(program_.instructions.size(), kNoPlace);
  for (std::size_t step = 0; step < steps_.size(); ++step) {
    for (std::size_t k = 0; k < steps_[step].instructions.size(); ++k) {
      const std::size_t index = steps_[step].instructions[k];
      const RowInstruction& instruction = program_.instructions[index];
      if (instruction.kind == RowInstruction::Kind::column_sum) {
        sums_of_[index] = column_sums_.size();
        column_sums_.resize(column_sums_.size() + static_cast<std::size_t>(program_.width));
        continue;
      }
      const bool is_chain = steps_[step].is_chain();
      if (instruction.output || !instruction.is_wide || (is_chain && !steps_[step].is_kept[k])) continue;
      std::size_t place = 0;
      while (place < free_from.size() && free_from[place] > step) ++place;
      free_from.resize(std::max(free_from.size(), place + 1));
      // An instruction may write in the place of an operand, whose elements it reads first. A chain may not: it writes
      // a result before it reads the operands of the next one.
      const std::size_t last = last_reader(index, step);
      const bool is_read_by_chain = steps_[last].is_chain();
      free_from[place] = std::max(last + (is_read_by_chain ? 1 : 0), step + 1);
      offset_of_[index] = place * wide;
    }
  }
  floats_ = free_from.size() * wide;
  // Results of one number a row follow, each in its own place. They are small, so sharing would save little.
  for (std::size_t i = 0; i < program_.instructions.size(); ++i) {
    if (program_.instructions[i].output || program_.instructions[i].is_wide) continue;
    offset_of_[i] = floats_;
    floats_ += rounded(block_rows_);
  }
  scratch_.grow_to(floats_);
}

const OperandRows& CpuRowOperation::place_of(const RowOperand& operand) const {
  switch (operand.kind) {
    case RowOperand::Kind::input:
      return places_[operand.index];
    case RowOperand::Kind::result:
      return places_[program_.inputs.size() + operand.index];
    case RowOperand::Kind::constant:
      return places_[program_.inputs.size() + program_.instructions.size() + operand.index];
  }
  HOLDFAST_ASSERT(false);
}

void CpuRowOperation::place_inputs(std::span<const float* const> inputs, std::int64_t first) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    switch (program_.inputs[i]) {
      case RowArray::wide:
        places_[i] = {inputs[i] + first * program_.width, program_.width, false};
        break;
      case RowArray::narrow:
        places_[i] = {inputs[i] + first, 1, true};
        break;
      case RowArray::column:
        places_[i] = {inputs[i], 0, false};
        break;
      case RowArray::number:
        places_[i] = {inputs[i], 0, true};
        break;
    }
  }
}

void CpuRowOperation::run_elements(const RowInstruction& instruction, std::int64_t rows, float* result) {
  const VectorKernels& kernels = vector_kernels();
  const std::int64_t width = instruction.is_wide ? program_.width : 1;
  ElementLane lanes[kMaximumOperands];
  const OperandRows* places[kMaximumOperands];
  const std::size_t count = operand_count(instruction.function);
  // Whether the rows of all operands lie one after the other, or are one number: then they are one long row.
  bool is_one_row = true;
  for (std::size_t i = 0; i < count; ++i) {
    const OperandRows& place = place_of(instruction.operands[i]);
    places[i] = &place;
    // A narrow instruction has an element for each row.
    lanes[i] = {.values = place.values, .is_scalar = instruction.is_wide ? place.is_scalar : place.row_stride == 0};
    // Rows have two numbers at least (nn/plan/row_fusion.cpp). With one, the stride of a narrow array would be `width`.
    is_one_row = is_one_row && (place.row_stride == width || (place.row_stride == 0 && place.is_scalar));
  }
  // One call for all rows: the dispatch of an instruction for each short row would take longer than its numbers.
  if (is_one_row) return kernels.run_instruction(instruction.function, lanes, rows * width, result);
  for (std::int64_t row = 0; row < rows; ++row) {
    kernels.run_instruction(instruction.function, lanes, width, result + row * width);
    for (std::size_t i = 0; i < count; ++i) lanes[i].values += places[i]->row_stride;
  }
}

void CpuRowOperation::run_reduction(const RowInstruction& instruction, std::int64_t rows, float* result) {
  const VectorKernels& kernels = vector_kernels();
  const RowReduction reduction = {.kind = instruction.reduction, .outer = rows, .reduced = program_.width};
  const float* const a = place_of(instruction.operands[0]).values;
  if (instruction.function == ElementFunction::copy) return kernels.reduce(reduction, a, result);
  // Factors are multiplied while they are added up, so products take no memory.
  const bool is_square = instruction.function == ElementFunction::square;
  kernels.reduce_products(reduction, a, is_square ? a : place_of(instruction.operands[1]).values, result);
}

void CpuRowOperation::add_columns(std::size_t index, std::int64_t rows) {
  const VectorKernels& kernels = vector_kernels();
  const RowInstruction& instruction = program_.instructions[index];
  const float* const a = place_of(instruction.operands[0]).values;
  const float* b = nullptr;
  if (instruction.function == ElementFunction::square) b = a;
  if (instruction.function == ElementFunction::multiply) b = place_of(instruction.operands[1]).values;
  // Results lie in scratch memory, whose next block is there already.
  const auto is_input = [&](std::size_t operand) {
    return instruction.operands[operand].kind == RowOperand::Kind::input;
  };
  const bool are_inputs = is_input(0) && (instruction.function != ElementFunction::multiply || is_input(1));
  kernels.add_rows(a, b, rows, program_.width, are_inputs && !ahead_.empty(), column_sums_.data() + sums_of_[index]);
}

void CpuRowOperation::run_instruction(std::size_t index, std::int64_t rows, float* result) {
  const RowInstruction& instruction = program_.instructions[index];
  switch (instruction.kind) {
    case RowInstruction::Kind::elements:
      return run_elements(instruction, rows, result);
    case RowInstruction::Kind::reduction:
      return run_reduction(instruction, rows, result);
    case RowInstruction::Kind::column_sum:
      return add_columns(index, rows);
  }
}

// The whole rows that the next block reads and writes in memory, from its first one on.
void CpuRowOperation::find_ahead(std::span<const float* const> inputs, std::span<float* const> outputs,
                                 std::int64_t next) {
  ahead_.clear();
  if (next >= rows_) return;
  const std::int64_t offset = next * program_.width;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (program_.inputs[i] == RowArray::wide) ahead_.push_back(inputs[i] + offset);
  }
  for (const RowInstruction& instruction : program_.instructions) {
    const bool has_rows = instruction.is_wide && instruction.kind != RowInstruction::Kind::column_sum;
    if (instruction.output && has_rows) ahead_.push_back(outputs[*instruction.output] + offset);
  }
}

// Chains share the arrays that are asked for. Where there are too many for them, the machine finds the others itself.
void CpuRowOperation::run_chain(const RowStep& step, std::int64_t rows, std::size_t chain_number) {
  const int length = static_cast<int>(step.instructions.size());
  ElementFunction functions[ElementChain::kMaximumLength];
  ElementChain chain = {.rows = rows, .width = program_.width, .first = place_of(step.first)};
  for (int k = 0; k < length; ++k) {
    chain.operands[k] = place_of(step.operands[k]);
    const std::size_t index = step.instructions[static_cast<std::size_t>(k)];
    functions[k] = program_.instructions[index].function;
    // A result is written where the block of the instruction lies.
    if (step.is_kept[k]) chain.results[k] = writable_[index];
  }
  if (step.sum == ChainSum::products) chain.factor = place_of(step.factor);
  if (step.reduction) {
    chain.sums = writable_[*step.reduction];
    // A mean is divided in double, before it becomes a float.
    const bool is_mean = program_.instructions[*step.reduction].reduction == ReductionKind::mean;
    chain.divisor = is_mean ? static_cast<double>(program_.width) : 1.0;
  }
  for (int k = 0; k < ElementChain::kMaximumAhead; ++k, chain_number += chains_) {
    if (chain_number < ahead_.size()) chain.ahead[k] = ahead_[chain_number];
  }
  vector_kernels().find_chain(functions, length, step.sum)(chain);
}

// Where the block of an instruction's result lies; null if it has none.
float* CpuRowOperation::place_result(std::size_t index, std::span<float* const> outputs, std::int64_t first) {
  const RowInstruction& instruction = program_.instructions[index];
  if (instruction.kind == RowInstruction::Kind::column_sum) return nullptr;
  const std::int64_t width = instruction.is_wide ? program_.width : 1;
  float* result = nullptr;
  if (offset_of_[index] != kNoPlace) result = scratch_.data() + offset_of_[index];
  // An output is written where the caller wants it, and later instructions read it there.
  if (instruction.output) result = outputs[*instruction.output] + first * width;
  places_[program_.inputs.size() + index] = {result, width, !instruction.is_wide};
  return result;
}

void CpuRowOperation::run(std::span<const float* const> inputs, std::span<float* const> outputs) {
  // Sums of columns go on from block to block in double, so their order is that of the rows.
  std::fill(column_sums_.begin(), column_sums_.end(), 0.0);
  for (std::int64_t first = 0; first < rows_; first += block_rows_) {
    const std::int64_t rows = std::min(block_rows_, rows_ - first);
    place_inputs(inputs, first);
    // All at once, since a step of several instructions writes several results.
    for (std::size_t i = 0; i < writable_.size(); ++i) writable_[i] = place_result(i, outputs, first);
    find_ahead(inputs, outputs, first + block_rows_);
    std::size_t chain_number = 0;
    for (const RowStep& step : steps_) {
      if (step.is_chain()) {
        run_chain(step, rows, chain_number++);
      } else {
        run_instruction(step.instructions[0], rows, writable_[step.instructions[0]]);
      }
    }
  }
  for (std::size_t i = 0; i < program_.instructions.size(); ++i) {
    if (sums_of_[i] == kNoPlace) continue;
    float* const columns = outputs[*program_.instructions[i].output];
    for (std::int64_t c = 0; c < program_.width; ++c) {
      columns[c] = static_cast<float>(column_sums_[sums_of_[i] + static_cast<std::size_t>(c)]);
    }
  }
}

}  // namespace

std::unique_ptr<RowOperation> make_row_operation(RowProgram program, std::int64_t rows) {
  return std::make_unique<CpuRowOperation>(std::move(program), rows);
}

}  // namespace holdfast::compute
