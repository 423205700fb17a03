#pragma once

// The memory that the watchdog holds for snapshots of the run's state. Each process that writes them gets a memory of
// its own, so that one that was stopped and wakes up late cannot spoil those of its successor; those of earlier writers
// stay until the newest has written a whole one.

#include <cstddef>
#include <optional>
#include <vector>

#include "holdfast/base/shared_memory.h"
#include "holdfast/recovery/memory_snapshot.h"

namespace holdfast::recovery {

class SnapshotMemories {
 public:
  // For a new writer, who gets the descriptor. Throws Error when there is no memory.
  FileDescriptor add(std::size_t bytes);
  void forget_old();
  // The newest writer's first.
  std::vector<FileDescriptor> read_only_descriptors() const;
  // By step, of all of them; valid until one is added or forgotten.
  std::optional<MemorySnapshots::Whole> newest() const;

 private:
  std::vector<SharedMemory> memories_;  // the newest writer's last
};

}  // namespace holdfast::recovery
