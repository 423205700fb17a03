#include "compute/result_places.h"

#include <algorithm>
#include <array>

namespace holdfast::compute {

ResultPlaces result_places(const ElementProgram& program) {
  // The last instruction that reads a result.
  std::array<std::size_t, ElementProgram::kMaximumInstructions> last_reader{};
  for (std::size_t i = 0; i < program.instruction_count; ++i) {
    const ElementInstruction& instruction = program.instructions[i];
    last_reader[i] = i;
    for (std::size_t k = 0; k < operand_count(instruction.function); ++k) {
      const ElementOperand& operand = instruction.operands[k];
      if (operand.kind == ElementOperand::Kind::result) last_reader[operand.index] = i;
    }
  }
  for (std::size_t i = 0; i < program.output_count; ++i) last_reader[program.outputs[i]] = program.instruction_count;
  ResultPlaces places;
  // By place: the first instruction that may take it.
  std::array<std::size_t, ElementProgram::kMaximumInstructions> free_from{};
  for (std::size_t i = 0; i < program.instruction_count; ++i) {
    std::size_t place = 0;
    while (free_from[place] > i) ++place;
    places.of[i] = static_cast<std::uint8_t>(place);
    // An instruction reads its operands before it writes, so the last reader may write in the place of what it read.
    free_from[place] = std::max(last_reader[i], i + 1);
  }
  return places;
}

}  // namespace holdfast::compute
