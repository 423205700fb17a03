#pragma once

// Faults made on purpose, to show that recovery works: at a given rank, step and phase a replica kills, stops, hangs or
// fails itself. Each fires once in the life of a run directory, so that the recovered run passes the same place
// unharmed.

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::recovery {

enum class FaultPhase { compute, reduce, update, save };

enum class FaultKind {
  kill,             // SIGKILL to itself
  stop,             // SIGSTOP to itself
  throw_exception,  // std::runtime_error
  hang,             // sleeps for ever without progress
  exit,             // leaves with exit code 3, without a report
  kill_watchdog,    // SIGKILL to the watchdog
};

struct Fault {
  int rank = 0;
  std::int64_t step = 0;
  FaultPhase phase = FaultPhase::compute;
  FaultKind kind = FaultKind::kill;
  std::optional<int> generation{};  // empty: in whichever generation gets there first
  std::string specification{};      // as the user wrote it
};

// Reads "rank=1,step=120,fault=kill[,phase=compute|reduce|update|save][,generation=0]"; kinds are kill, stop, throw,
// hang, exit and kill-watchdog. Throws Error{invalid_argument} that says what is allowed.
Fault parse_fault(std::string_view specification, int replicas);

// The faults of a run as one replica meets them. reach() may be called from several threads at once.
class Faults {
 public:
  struct Place {
    int rank = 0;
    int generation = 0;
    int watchdog_pid = 0;
    std::string run_directory{};
  };

  // `faults` are those of all ranks, in the order in which they were given.
  Faults(std::vector<Fault> faults, Place place);

  // The process has another rank in another generation.
  void move_to(int rank, int generation);

  // Called where training gets to `phase` of `step`. Fires what is due there, after
  // RUN_DIRECTORY/faults/INDEX-HASH.fired is on stable storage. Throws what the fault throws, or Error when that mark
  // cannot be written.
  void reach(FaultPhase phase, std::int64_t step) const;

 private:
  bool is_due(const Fault& fault, FaultPhase phase, std::int64_t step) const;
  // False when the mark was there already.
  bool mark_as_fired(std::size_t index) const;
  void fire(const Fault& fault) const;

  const std::vector<Fault> faults_;
  const Place place_;
  std::atomic<int> rank_;
  std::atomic<int> generation_;
};

}  // namespace holdfast::recovery
