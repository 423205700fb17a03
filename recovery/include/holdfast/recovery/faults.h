#pragma once

// Faults made on purpose, to show that recovery works: where training gets to the place that a fault names, the replica
// does it to itself. Each strikes once in the life of a run directory, so that the recovered run passes the same place
// unharmed.
//
// What a process can do to itself strikes in reach(). What needs training's data, files or pace is asked for where
// training has these at hand: corruption(), file_failure(), slowdown().

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "holdfast/recovery/fault_plan.h"

namespace holdfast::recovery {

// Faults that whoever starts a program gives it, for tests of programs that have no option for them: specifications
// (fault_plan.h) separated by semicolons.
inline constexpr const char* kFaultsVariable = "HOLDFAST_FAULTS";
// What the variable holds, in its order and unread; none where it is not set or empty.
std::vector<std::string> faults_of_environment();

// What a file operation needs of the disk: one that may need space fails when it is full.
enum class FileNeed { space, none };

// One float of the state, a gradient or a loss is to become wrong.
struct Corruption {
  CorruptionTarget target = CorruptionTarget::weight;
  bool is_nan = false;  // otherwise one bit is flipped
  std::uint64_t seed = 0;
};

// Changes one float of `blocks`, taken as one row of floats; which one is a function of the seed and of their number.
// Returns what was done, for a journal: "bit 30 of float 17 of 5000". Throws Error{invalid_argument} when there is no
// float.
std::string corrupt(const Corruption& corruption, std::span<const std::span<float>> blocks);

// The faults of a run as one process meets them. Any thread.
class Faults {
 public:
  // What the channel's faults need; a fault whose function is missing throws Error{unsupported}.
  struct Hooks {
    std::function<void()> close_channel{};
    std::function<void(std::span<const std::byte>)> send_garbage{};  // these bytes as they are
    // No sign of life from here on, for this long or, without a duration, for ever.
    std::function<void(std::optional<std::chrono::milliseconds>)> stop_beats{};
  };
  struct Place {
    int rank = 0;
    int generation = 0;  // -1: none yet
    int watchdog_pid = 0;
    std::string run_directory{};
    Hooks hooks{};
  };

  // `faults` are those of all ranks, in the order in which they were given.
  Faults(std::vector<Fault> faults, Place place);
  ~Faults();
  Faults(Faults&&) noexcept;
  Faults& operator=(Faults&&) noexcept;

  // The process has another rank in another generation. What is going on (slow, full disk) goes on.
  void move_to(int rank, int generation);

  // Called where training gets to `phase` of `step`. Strikes with what is due there, after
  // RUN_DIRECTORY/faults/INDEX-HASH.fired is on stable storage. Throws what the fault throws, or Error when that mark
  // cannot be written, as the others do.
  void reach(FaultPhase phase, std::int64_t step) const;

  // What is due to become wrong here, behind reach() of the same place; ask until there is no more.
  std::optional<Corruption> corruption(FaultPhase phase, std::int64_t step) const;
  // Whether corruption() may have an answer there; also where it had one before.
  bool may_corrupt(FaultPhase phase, std::int64_t step) const;

  // How many times as long as it takes this replica shall take to compute this step; 1 where nothing is due.
  double slowdown(std::int64_t step) const;

  // The errno with which the file operation of a savepoint that is to be done in `phase` of `step` must fail; without a
  // phase, one that begins no fault but meets those that are going on. Each call stands for one operation.
  std::optional<int> file_failure(std::optional<FaultPhase> phase, std::int64_t step, FileNeed need) const;

 private:
  struct Course;

  // What was given, constant; and what is going on, with a lock of its own.
  bool is_due(const Fault& fault, FaultPhase phase, std::int64_t step) const;
  // False when the mark was there already.
  bool mark_as_fired(std::size_t index) const;

  std::vector<Fault> faults_;
  Place place_;  // but for rank and generation, which change
  std::unique_ptr<Course> course_;
};

}  // namespace holdfast::recovery
