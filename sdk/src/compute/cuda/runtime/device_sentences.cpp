#include "compute/cuda/runtime/device_sentences.h"

#include <array>
#include <cstdio>

namespace holdfast::compute {

std::string in_bytes(std::size_t bytes) {
  constexpr std::size_t kKibi = 1024;
  if (bytes < kKibi) return std::to_string(bytes) + " bytes";
  double amount = static_cast<double>(bytes) / static_cast<double>(kKibi);
  const char* unit = "KiB";
  for (const char* const larger : {"MiB", "GiB"}) {
    if (amount < static_cast<double>(kKibi)) break;
    amount /= static_cast<double>(kKibi);
    unit = larger;
  }
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f %s", amount, unit);
  return text.data();
}

std::string describe(const MemoryShortage& shortage) {
  const std::string there = in_bytes(shortage.free_bytes) + " of its " + in_bytes(shortage.total_bytes) + " are free";
  const std::string start = "allocating " + in_bytes(shortage.asked_bytes) + " on " + shortage.device + " failed: ";
  if (shortage.asked_bytes <= shortage.free_bytes) {
    return start + there + ", but not in one piece; restarting what runs on the device would help";
  }
  return start + there + ", " + in_bytes(shortage.asked_bytes - shortage.free_bytes) +
         " are missing; a smaller batch, fewer replicas on this device or ending other programs on it would help";
}

}  // namespace holdfast::compute
