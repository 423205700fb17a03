#include "memory/snapshot_memories.h"

#include <utility>

#include "channel/descriptors.h"

namespace holdfast::recovery {

FileDescriptor SnapshotMemories::add(std::size_t bytes) {
  SharedMemory memory = SharedMemory::create("holdfast-snapshots", bytes);
  FileDescriptor descriptor = duplicate(memory.descriptor());
  // The mapping that is kept here lets the snapshots outlive their writer.
  memories_.push_back(std::move(memory));
  return descriptor;
}

// An earlier memory is needed only until a later one holds a whole snapshot.
void SnapshotMemories::forget_old() {
  while (memories_.size() > 1 && MemorySnapshots::newest(memories_.back())) {
    memories_.erase(memories_.begin());
  }
}

// Read-only, because the reader may be a process that is about to fail.
std::vector<FileDescriptor> SnapshotMemories::read_only_descriptors() const {
  std::vector<FileDescriptor> descriptors;
  for (auto memory = memories_.rbegin(); memory != memories_.rend(); ++memory) {
    descriptors.push_back(memory->read_only_descriptor());
  }
  return descriptors;
}

std::optional<MemorySnapshots::Whole> SnapshotMemories::newest() const {
  // The newest memory need not have the newest state: its writer may not have made a whole snapshot yet.
  std::optional<MemorySnapshots::Whole> newest;
  for (const SharedMemory& memory : memories_) {
    const auto candidate = MemorySnapshots::newest(memory);
    if (candidate && (!newest || candidate->step > newest->step)) newest = candidate;
  }
  return newest;
}

}  // namespace holdfast::recovery
