#pragma once

// Faults made on purpose, to show that recovery works. When training reaches the phase that a fault names, the replica
// does the fault to itself. Each fault strikes once in the life of a run directory, so that the recovered run passes
// the same phase unharmed.
//
//   faults.reach(FaultPhase::forward, step);   // may not return
//
// reach() strikes with faults that a process can do to itself. Faults that need training's numbers, files or pace are
// asked for where training has these at hand: corruption(), file_failure(), slowdown().

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

// The environment variable with faults for a program that has no option for them: specifications (fault_plan.h)
// separated by semicolons.
inline constexpr const char* kFaultsVariable = "HOLDFAST_FAULTS";
// The specifications in the variable, in order and not yet parsed. Empty where it is not set.
std::vector<std::string> faults_of_environment();

// What a file operation needs from the disk. An operation that needs space fails when the disk is full.
enum class FileNeed { space, none };

// One float of the state, of a gradient or of a loss is to become wrong.
struct Corruption {
  CorruptionTarget target = CorruptionTarget::weight;  // what it changes
  bool is_nan = false;                                 // false: one bit is flipped
  std::uint64_t seed = 0;                              // decides which float, and which bit
};

// Changes one float of `blocks`, which count as one row of floats. Seed and number of floats decide which one. Returns
// what was done, for a journal: "bit 30 of float 17 of 5000". Throws Error{invalid_argument} when there is no float.
std::string corrupt(const Corruption& corruption, std::span<const std::span<float>> blocks);

// The faults of a run, as one process meets them. Any thread.
class Faults {
 public:
  // What faults of the channel need. A fault whose function is missing throws Error{unsupported}.
  struct Hooks {
    std::function<void()> close_channel{};                           // shuts down the channel to the watchdog
    std::function<void(std::span<const std::byte>)> send_garbage{};  // these bytes, as they are
    // No heartbeats from here on, for this long or, without a duration, until the process ends.
    std::function<void(std::optional<std::chrono::milliseconds>)> stop_beats{};
  };
  // The process that faults are to strike.
  struct Process {
    int rank = 0;                 // its rank; of a spare, the one that it was started for
    int generation = 0;           // -1: none yet
    int watchdog_pid = 0;         // whom kill_watchdog kills
    std::string run_directory{};  // whose newest savepoint `damage` changes
    Hooks hooks{};                // empty for a process without a channel
  };

  // `faults` are those of all ranks, in the order in which they were given. That order numbers them.
  Faults(std::vector<Fault> faults, Process process);
  ~Faults();
  Faults(Faults&&) noexcept;
  Faults& operator=(Faults&&) noexcept;

  // The process has another rank in another generation. Faults that last (slow, full disk) go on.
  void move_to(int rank, int generation);

  // Call it where training reaches `phase` of `step`. Strikes with the faults that are due there, after
  // RUN_DIRECTORY/faults/INDEX-HASH.fired is on stable storage. Throws what the fault throws, or Error when that mark
  // cannot be written. So do the functions below.
  void reach(FaultPhase phase, std::int64_t step) const;

  // What is due to become wrong here. Call it after reach() for the same phase and step, until it returns nothing.
  std::optional<Corruption> corruption(FaultPhase phase, std::int64_t step) const;
  // Whether corruption() may return something there. Stays true after it did.
  bool may_corrupt(FaultPhase phase, std::int64_t step) const;

  // The factor by which computing this step is to take longer; 1 where no fault is due.
  double slowdown(std::int64_t step) const;

  // The errno with which an operation on the files of a savepoint must fail, in `phase` of `step`. Without a phase, no
  // fault begins, but those that last still apply. Each call stands for one operation.
  std::optional<int> file_failure(std::optional<FaultPhase> phase, std::int64_t step, FileNeed need) const;

 private:
  struct Course;

  bool is_due(const Fault& fault, FaultPhase phase, std::int64_t step) const;
  // False when the mark existed already.
  bool mark_as_fired(std::size_t index) const;

  std::vector<Fault> faults_;       // constant
  Process process_;                 // constant; its rank and generation are those of the start
  std::unique_ptr<Course> course_;  // rank, generation and faults that last; has a lock of its own
};

}  // namespace holdfast::recovery
