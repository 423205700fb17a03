#pragma once

// Pieces of memory of one kind: host memory that is registered with the device, so that copies may go straight to and
// from it; what was allocated on the device.

#include <cstddef>
#include <map>
#include <span>

namespace holdfast::compute {

class MemoryRanges {
 public:
  // Ranges never overlap.
  void add(std::span<const std::byte> range) { ends_[range.data()] = range.data() + range.size(); }

  // Whether a range was added that begins there; it is forgotten.
  bool remove(std::span<const std::byte> range) { return ends_.erase(range.data()) > 0; }

  // Whether all of `memory` lies in one range.
  bool contain(std::span<const std::byte> memory) const {
    auto after = ends_.upper_bound(memory.data());
    if (after == ends_.begin()) return false;
    return memory.data() + memory.size() <= (--after)->second;
  }

 private:
  std::map<const std::byte*, const std::byte*> ends_;  // by beginning
};

}  // namespace holdfast::compute
