#include "compute/cuda/runtime/device_sentences.h"

#include <fmt/format.h>

namespace holdfast::compute {

std::string in_bytes(std::size_t bytes) {
  constexpr std::size_t kKibi = 1024;
  if (bytes < kKibi) return fmt::format("{} bytes", bytes);
  double amount = static_cast<double>(bytes) / static_cast<double>(kKibi);
  const char* unit = "KiB";
  for (const char* const larger : {"MiB", "GiB"}) {
    if (amount < static_cast<double>(kKibi)) break;
    amount /= static_cast<double>(kKibi);
    unit = larger;
  }
  return fmt::format("{:.1f} {}", amount, unit);
}

std::string describe(const MemoryShortage& shortage) {
  const std::string there =
      fmt::format("{} of its {} are free", in_bytes(shortage.free_bytes), in_bytes(shortage.total_bytes));
  const std::string start =
      fmt::format("allocating {} on {} failed: ", in_bytes(shortage.asked_bytes), shortage.device);
  // The free memory is in pieces, so a smaller batch might not help.
  if (shortage.asked_bytes <= shortage.free_bytes) {
    return fmt::format("{}{}, but not in one piece; restarting what runs on the device would help", start, there);
  }
  return fmt::format(
      "{}{}, {} are missing; a smaller batch, fewer replicas on this device or ending other programs on it "
      "would help",
      start, there, in_bytes(shortage.asked_bytes - shortage.free_bytes));
}

}  // namespace holdfast::compute
