#include "memory/snapshot_memories.h"

#include <utility>

#include "channel/descriptors.h"

namespace holdfast::recovery {

// Writers may die one after another before their first whole snapshot. Each memory is as large as the state twice, and
// a message has room for few descriptors.
constexpr std::size_t kMostMemories = 8;

FileDescriptor SnapshotMemories::add(std::size_t bytes) {
  if (memories_.size() == kMostMemories) {
    // The oldest one goes, unless it has what a run would go on from.
    const auto best = newest();
    const auto first = MemorySnapshots::newest(memories_.front());
    const bool is_best = best && first && first->step == best->step;
    memories_.erase(memories_.begin() + (is_best ? 1 : 0));
  }
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
