#pragma once

// How long the latest steps of a run took, in bounded memory. The hang detector derives its limits from them.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace holdfast::recovery {

class StepTimes {
 public:
  // Records that `steps` steps took `each` on average. Does nothing when `steps` is 0.
  void record(std::chrono::nanoseconds each, std::uint64_t steps);

  // The number of all recorded steps.
  std::uint64_t steps() const { return steps_; }
  // The shortest time that 99 of 100 steps did not exceed, over the latest kRecords records. Zero without records.
  std::chrono::nanoseconds p99() const;

  static constexpr std::size_t kRecords = 512;

 private:
  struct Record {
    std::chrono::nanoseconds each{};
    std::uint64_t steps = 0;
  };

  std::chrono::nanoseconds find_p99() const;

  std::array<Record, kRecords> records_{};  // a ring buffer
  std::size_t next_ = 0;
  std::uint64_t steps_ = 0;
  mutable std::optional<std::chrono::nanoseconds> p99_{};  // of the present records; empty until asked for
};

}  // namespace holdfast::recovery
