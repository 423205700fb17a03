#include "compute/cpu/kernels/vector_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "compute/cpu/kernels/tables.h"
#include "holdfast/base/error.h"

namespace holdfast::compute {

std::string_view name_of(InstructionSet set) {
  static constexpr std::array<std::string_view, 3> kSetNames = {"baseline", "avx2", "avx512"};
  return kSetNames.at(static_cast<std::size_t>(set));
}

namespace {

constexpr std::array kAllSets = {InstructionSet::baseline, InstructionSet::avx2, InstructionSet::avx512};

bool machine_has(InstructionSet set) {
  if (set == InstructionSet::baseline) return true;
#ifdef __x86_64__
  if (set == InstructionSet::avx2) return __builtin_cpu_supports("avx2") != 0;
  // All four that the source is compiled with (sdk/CMakeLists.txt): the compiler may use any of them.
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#else
  return false;
#endif
}

const VectorKernels& table_of(InstructionSet set) {
#ifdef __x86_64__
  if (set == InstructionSet::avx512) return kAvx512Kernels;
  if (set == InstructionSet::avx2) return kAvx2Kernels;
#endif
  HOLDFAST_ASSERT(set == InstructionSet::baseline);
  return kBaselineKernels;
}

// Null until a test forces a set.
std::atomic<const VectorKernels*> forced_kernels = nullptr;

}  // namespace

std::span<const InstructionSet> supported_instruction_sets() {
  // Each set contains those before it.
  static const auto missing = std::find_if_not(kAllSets.begin(), kAllSets.end(), machine_has);
  return {kAllSets.begin(), missing};
}

const VectorKernels& vector_kernels() {
  static const VectorKernels& best = table_of(supported_instruction_sets().back());
  // All tables give the same bits, so it does not matter when a thread sees a change.
  const VectorKernels* const forced = forced_kernels.load(std::memory_order_relaxed);
  return forced == nullptr ? best : *forced;
}

void force_instruction_set(std::optional<InstructionSet> set) {
  if (!set) {
    forced_kernels = nullptr;
    return;
  }
  if (!machine_has(*set)) {
    throw Error(ErrorCode::unavailable,
                fmt::format("the loops of instruction set {} were asked for, which this machine does not have; its "
                            "best one is {}",
                            name_of(*set), name_of(supported_instruction_sets().back())));
  }
  forced_kernels = &table_of(*set);
}

}  // namespace holdfast::compute
