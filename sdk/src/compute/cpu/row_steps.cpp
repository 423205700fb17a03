// An instruction of its own reads its operands from the first-level cache and writes its result there, which takes more
// time than an addition. So additions, subtractions and products that follow one another run in one loop, and so does
// the sum of what they give. A chain runs where its last instruction stands. docs/decisions/plans.md

#include "compute/cpu/row_steps.h"

#include <algorithm>

namespace holdfast::compute {

namespace {

constexpr std::size_t kNoStep = static_cast<std::size_t>(-1);

// A loop does not read what it has written itself.
bool is_result_of(const RowStep& step, const RowOperand& operand) {
  return operand.kind == RowOperand::Kind::result &&
         std::find(step.instructions.begin(), step.instructions.end(), operand.index) != step.instructions.end();
}

class StepFinder {
 public:
  explicit StepFinder(const RowProgram& program) : program_(program), runs_at_(program.instructions.size(), kNoStep) {}

  std::vector<RowStep> find();

 private:
  bool may_join(std::size_t index) const;
  bool is_ready(const RowOperand& operand, std::size_t place) const;
  std::optional<RowOperand> other_operand(std::size_t index, std::size_t result) const;
  bool waits_for_nothing(const RowStep& step, std::size_t next) const;
  std::optional<std::size_t> only_reader(std::size_t result) const;
  bool extend(RowStep& step) const;
  void add_reduction(RowStep& step);
  bool take_reduction(RowStep& step, std::size_t reduction);
  void find_kept(RowStep& step) const;

  const RowProgram& program_;
  std::vector<std::size_t> runs_at_;  // by instruction: the place of the last one of its step
};

// Only functions that the loops of chains have. An instruction that is part of a chain already is not taken twice.
bool StepFinder::may_join(std::size_t index) const {
  const RowInstruction& instruction = program_.instructions[index];
  const ElementFunction function = instruction.function;
  return runs_at_[index] == kNoStep && instruction.kind == RowInstruction::Kind::elements && instruction.is_wide &&
         (function == ElementFunction::add || function == ElementFunction::subtract ||
          function == ElementFunction::multiply);
}

// Whether the operand is there for a step that runs at a place.
bool StepFinder::is_ready(const RowOperand& operand, std::size_t place) const {
  if (operand.kind != RowOperand::Kind::result) return true;
  const std::size_t runs_at = runs_at_[operand.index] == kNoStep ? operand.index : runs_at_[operand.index];
  return runs_at < place;
}

// The operand besides the result, of an instruction that takes it as its first number.
std::optional<RowOperand> StepFinder::other_operand(std::size_t index, std::size_t result) const {
  const RowInstruction& instruction = program_.instructions[index];
  const auto is_result = [&](const RowOperand& operand) {
    return operand.kind == RowOperand::Kind::result && operand.index == result;
  };
  const RowOperand& a = instruction.operands[0];
  const RowOperand& b = instruction.operands[1];
  if (is_result(a) && !is_result(b)) return b;
  if (is_result(b) && !is_result(a) && instruction.function != ElementFunction::subtract) return a;
  return std::nullopt;
}

// Whether the instructions of a step may run as late as at `next`.
bool StepFinder::waits_for_nothing(const RowStep& step, std::size_t next) const {
  for (std::size_t between = step.instructions.back() + 1; between < next; ++between) {
    const RowInstruction& instruction = program_.instructions[between];
    // It could write over an input that the step reads.
    if (instruction.output && instruction.is_wide) return false;
    const auto is_read = [&](std::size_t member) { return reads_result(instruction, member); };
    if (std::any_of(step.instructions.begin(), step.instructions.end(), is_read)) return false;
  }
  return true;
}

// Adds the first instruction that reads the last result. If that one does not fit, the chain ends: a later one would
// run before it.
bool StepFinder::extend(RowStep& step) const {
  if (step.instructions.size() == ElementChain::kMaximumLength) return false;
  const std::size_t last = step.instructions.back();
  for (std::size_t next = last + 1; next < program_.instructions.size(); ++next) {
    if (!reads_result(program_.instructions[next], last)) continue;
    const std::optional<RowOperand> other = other_operand(next, last);
    if (!may_join(next) || !other || !is_ready(*other, next) || is_result_of(step, *other) ||
        !waits_for_nothing(step, next)) {
      return false;
    }
    step.operands[step.instructions.size()] = *other;
    step.instructions.push_back(next);
    return true;
  }
  return false;
}

// Chains have loops of sums alone, so a maximum stays an instruction of its own.
bool StepFinder::take_reduction(RowStep& step, std::size_t index) {
  const RowInstruction& reduction = program_.instructions[index];
  const bool is_sum = reduction.kind == RowInstruction::Kind::reduction && runs_at_[index] == kNoStep &&
                      reduction.reduction != ReductionKind::maximum;
  if (!is_sum) return false;
  const std::size_t last = step.instructions.back();
  switch (reduction.function) {
    case ElementFunction::copy:
      step.sum = ChainSum::values;
      break;
    case ElementFunction::square:
      step.sum = ChainSum::squares;
      break;
    default: {
      const std::optional<RowOperand> factor = other_operand(index, last);
      // It is read where the chain runs, which is earlier than the reduction.
      if (!factor || !is_ready(*factor, last) || is_result_of(step, *factor)) return false;
      step.sum = ChainSum::products;
      step.factor = *factor;
    }
  }
  step.reduction = index;
  return true;
}

// Nothing if there are two: a result that is not written must have no other reader.
std::optional<std::size_t> StepFinder::only_reader(std::size_t result) const {
  std::optional<std::size_t> found;
  for (std::size_t index = result + 1; index < program_.instructions.size(); ++index) {
    if (!reads_result(program_.instructions[index], result)) continue;
    if (found) return std::nullopt;
    found = index;
  }
  return found;
}

// The reduction is taken where the chain runs.
void StepFinder::add_reduction(RowStep& step) {
  const std::size_t last = step.instructions.back();
  for (std::size_t index = last + 1; index < program_.instructions.size(); ++index) {
    const RowInstruction& instruction = program_.instructions[index];
    if (!reads_result(instruction, last)) continue;
    if (take_reduction(step, index)) return;
    // The sum of negative results, which nothing else needs.
    const bool is_negative = instruction.kind == RowInstruction::Kind::elements && !instruction.output &&
                             instruction.function == ElementFunction::negative && runs_at_[index] == kNoStep;
    const std::optional<std::size_t> reader = is_negative ? only_reader(index) : std::nullopt;
    if (!reader || program_.instructions[*reader].function != ElementFunction::copy) continue;
    if (!take_reduction(step, *reader)) continue;
    step.sum = ChainSum::negatives;
    runs_at_[index] = last;
    return;
  }
}

// What a loop must write: a result that is an output, or that another step reads.
void StepFinder::find_kept(RowStep& step) const {
  const std::size_t place = step.instructions.back();
  for (std::size_t k = 0; k < step.instructions.size(); ++k) {
    const std::size_t member = step.instructions[k];
    step.is_kept[k] = program_.instructions[member].output.has_value();
    for (std::size_t reader = member + 1; reader < program_.instructions.size(); ++reader) {
      const bool is_of_step = runs_at_[reader] == place;
      if (reads_result(program_.instructions[reader], member) && !is_of_step) step.is_kept[k] = true;
    }
  }
}

std::vector<RowStep> StepFinder::find() {
  std::vector<RowStep> chains;
  for (std::size_t index = 0; index < program_.instructions.size(); ++index) {
    if (!may_join(index)) continue;
    RowStep step = {.instructions = {index}, .first = program_.instructions[index].operands[0]};
    step.operands[0] = program_.instructions[index].operands[1];
    // A sum ends a chain: what others read is in memory then.
    do {
      if (step.instructions.size() < ElementChain::kMaximumLength) add_reduction(step);
    } while (!step.reduction && extend(step));
    if (!step.is_chain()) continue;
    for (const std::size_t member : step.instructions) runs_at_[member] = step.instructions.back();
    if (step.reduction) runs_at_[*step.reduction] = step.instructions.back();
    chains.push_back(std::move(step));
  }
  std::vector<RowStep> steps;
  for (std::size_t index = 0; index < program_.instructions.size(); ++index) {
    if (runs_at_[index] == kNoStep) {
      steps.push_back(RowStep{.instructions = {index}});
      continue;
    }
    if (runs_at_[index] != index) continue;
    const auto is_here = [&](const RowStep& chain) { return chain.instructions.back() == index; };
    steps.push_back(*std::find_if(chains.begin(), chains.end(), is_here));
  }
  for (RowStep& step : steps) find_kept(step);
  return steps;
}

}  // namespace

bool reads_result(const RowInstruction& instruction, std::size_t result) {
  for (std::size_t i = 0; i < operand_count(instruction.function); ++i) {
    const RowOperand& operand = instruction.operands[i];
    if (operand.kind == RowOperand::Kind::result && operand.index == result) return true;
  }
  return false;
}

std::vector<RowStep> find_row_steps(const RowProgram& program) {
  return StepFinder(program).find();
}

}  // namespace holdfast::compute
