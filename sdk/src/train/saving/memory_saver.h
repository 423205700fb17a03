#pragma once

// Keeps copies of the state in memory that outlives this process, so that a run whose replicas all die can go on
// without a savepoint. It does so as often as costs a small share of the time. docs/decisions/wrong-numbers.md

#include "train/agreement/agreement.h"
#include "train/saving/memory_snapshot_keeper.h"
#include "train/saving/memory_snapshot_schedule.h"
#include "train/saving/saver.h"
#include "train/step/training.h"

namespace holdfast {

// Only the training thread uses it.
class MemorySaver {
 public:
  MemorySaver(Training& training, Agreement& agreement, Saver& saver);

  // Whether rank 0 wants a snapshot after the next step: it asks all ranks to compare their states then.
  bool is_due();
  // All ranks: compares their states; rank 0 keeps a copy, and on CPUs one rank of each other host does.
  void keep();
  // A rank that keep() writes for, and that has left its generation: keeps a copy of its state, which it alone has. A
  // failure is a warning, and the copy before stays. For states on the host.
  void keep_while_waiting();
  // Waits for a copy that is on its way from a device. Rethrows its failure.
  void finish() { keeper_.finish(); }

 private:
  bool keeps_for_a_host() const;
  void keep_hosts_state();
  void keep_devices_state();
  // Returns the digest of the copy's arrays, if there is memory that outlives the process. It counts only where they
  // have the digest `expected`.
  std::optional<Digest> copy_to_memory(const StateImage& image, const Digest& expected);
  std::int64_t step_of_run() const;

  Training& training_;
  Agreement& agreement_;
  Saver& saver_;
  MemorySnapshotSchedule schedule_;
  MemorySnapshotKeeper keeper_;  // of states on devices
};

}  // namespace holdfast
