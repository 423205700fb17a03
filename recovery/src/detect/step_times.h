#pragma once

// How long the latest steps of a run took, in bounded memory.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace holdfast::recovery {

class StepTimes {
 public:
  // That `steps` steps took `each` on average. Counts as nothing when `steps` is 0.
  void record(std::chrono::nanoseconds each, std::uint64_t steps);

  // Of all that were recorded.
  std::uint64_t steps() const { return steps_; }
  // Of the steps in the latest kRecords records: the shortest time that 99 of 100 did not exceed. Zero without any.
  std::chrono::nanoseconds p99() const;

  static constexpr std::size_t kRecords = 512;

 private:
  struct Record {
    std::chrono::nanoseconds each{};
    std::uint64_t steps = 0;
  };

  std::chrono::nanoseconds find_p99() const;

  std::array<Record, kRecords> records_{};  // a ring
  std::size_t next_ = 0;
  std::uint64_t steps_ = 0;
  mutable std::optional<std::chrono::nanoseconds> p99_{};  // of the records as they are; sorted for only when asked
};

}  // namespace holdfast::recovery
