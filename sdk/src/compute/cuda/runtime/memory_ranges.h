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
  void add(std::span<const std::byte> range) { ranges_[range.data()] = {.end = range.data() + range.size()}; }

  // Whether this very range is there: it has one owner more then.
  bool share(std::span<const std::byte> range) {
    const auto found = ranges_.find(range.data());
    if (found == ranges_.end() || found->second.end != range.data() + range.size()) return false;
    ++found->second.owners;
    return true;
  }

  // Whether a range was added that begins there, and this was its last owner: it is forgotten then.
  bool remove(std::span<const std::byte> range) {
    const auto found = ranges_.find(range.data());
    if (found == ranges_.end() || --found->second.owners > 0) return false;
    ranges_.erase(found);
    return true;
  }

  // Whether all of `memory` lies in one range.
  bool contain(std::span<const std::byte> memory) const {
    auto after = ranges_.upper_bound(memory.data());
    if (after == ranges_.begin()) return false;
    return memory.data() + memory.size() <= (--after)->second.end;
  }

 private:
  struct Range {
    const std::byte* end = nullptr;
    int owners = 1;
  };
  std::map<const std::byte*, Range> ranges_;  // by beginning
};

}  // namespace holdfast::compute
