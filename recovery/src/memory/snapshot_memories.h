#pragma once

// The memories that the watchdog holds for snapshots of the run's state. Each writing process gets a memory of its own,
// so a process that was stopped and wakes up late cannot spoil the snapshots of its successor. The memories of earlier
// writers stay until the newest one holds a whole snapshot, but only a few of those that have none.

#include <cstddef>
#include <optional>
#include <vector>

#include "holdfast/base/shared_memory.h"
#include "holdfast/recovery/memory_snapshot.h"

namespace holdfast::recovery {

class SnapshotMemories {
 public:
  // Makes a memory, and returns a descriptor for its writer. Throws Error when there is no memory. May release an
  // earlier writer's, but never the one with the newest snapshot.
  FileDescriptor add(std::size_t bytes);
  // Releases the memories of earlier writers, once the newest one holds a whole snapshot.
  void forget_old();
  // In the order of writers, the newest first.
  std::vector<FileDescriptor> read_only_descriptors() const;
  // The snapshot with the highest step in all memories; valid until a memory is added or released.
  std::optional<MemorySnapshots::Whole> newest() const;

 private:
  std::vector<SharedMemory> memories_;  // in the order of writers, the newest last
};

}  // namespace holdfast::recovery
