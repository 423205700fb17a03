#pragma once

// A set of memory ranges of one kind, such as pinned host memory or what is allocated on the device.

#include <cstddef>
#include <map>
#include <span>

namespace holdfast::compute {

class MemoryRanges {
 public:
  // Adds a range with one owner. Ranges must not overlap.
  void add(std::span<const std::byte> range) { ranges_[range.data()] = {.end = range.data() + range.size()}; }

  // Adds an owner to exactly this range. Returns whether the range exists.
  bool share(std::span<const std::byte> range) {
    const auto found = ranges_.find(range.data());
    if (found == ranges_.end() || found->second.end != range.data() + range.size()) return false;
    ++found->second.owners;
    return true;
  }

  // Removes an owner from the range that begins like `range`. Returns whether this was its last owner; then the range
  // is removed too.
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
  std::map<const std::byte*, Range> ranges_;  // by first byte
};

}  // namespace holdfast::compute
