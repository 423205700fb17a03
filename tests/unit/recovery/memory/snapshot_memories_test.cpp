// The watchdog's memories of several writers, one after the other.

#include "memory/snapshot_memories.h"

#include <gtest/gtest.h>

#include <array>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "support/text/written_text.h"

namespace holdfast::recovery {
namespace {

constexpr std::size_t kSmallSnapshotBytes = 100;

// A process that received a memory, and writes snapshots there.
MemorySnapshots new_writer(SnapshotMemories& memories) {
  const std::size_t bytes = MemorySnapshots::memory_bytes(kSmallSnapshotBytes);
  return MemorySnapshots(SharedMemory::map_writable(memories.add(bytes), bytes));
}

void write(MemorySnapshots& writer, std::int64_t step) {
  const std::string text = "state " + std::to_string(step);
  EXPECT_TRUE(writer.write(0, step, text.size(), pieces_of(text)));
}

std::int64_t newest_step(const SnapshotMemories& memories) {
  const auto newest = memories.newest();
  return newest ? newest->step : -1;
}

// The steps in the memories, in the order in which a replica gets them; -1 if a memory has no whole snapshot.
std::vector<std::int64_t> steps_shown(const SnapshotMemories& memories) {
  std::vector<std::int64_t> steps;
  for (FileDescriptor& descriptor : memories.read_only_descriptors()) {
    const auto newest = MemorySnapshots::newest(SharedMemory::map_read_only(std::move(descriptor)));
    steps.push_back(newest ? newest->step : -1);
  }
  return steps;
}

}  // namespace

TEST(SnapshotMemories, AreEmptyBeforeTheFirstWriter) {
  const SnapshotMemories memories;

  EXPECT_EQ(newest_step(memories), -1);
  EXPECT_TRUE(memories.read_only_descriptors().empty());
}

TEST(SnapshotMemories, KeepAMemoryUntilTheNextHoldsAWholeSnapshot) {
  SnapshotMemories memories;
  MemorySnapshots first = new_writer(memories);
  write(first, 5);
  MemorySnapshots second = new_writer(memories);

  memories.forget_old();
  EXPECT_EQ(steps_shown(memories), (std::vector<std::int64_t>{-1, 5}));
  EXPECT_EQ(newest_step(memories), 5);

  write(second, 8);
  memories.forget_old();
  EXPECT_EQ(steps_shown(memories), std::vector<std::int64_t>{8});
}

TEST(SnapshotMemories, GiveTheNewestByStepFromAnyWriter) {
  SnapshotMemories memories;
  MemorySnapshots first = new_writer(memories);
  MemorySnapshots second = new_writer(memories);
  write(first, 9);
  write(second, 4);

  EXPECT_EQ(newest_step(memories), 9);
}

// A program that fails before its first snapshot, again and again.
TEST(SnapshotMemories, StayFewWhateverWritersDie) {
  SnapshotMemories memories;
  MemorySnapshots first = new_writer(memories);
  write(first, 5);
  for (int writer = 0; writer < 300; ++writer) new_writer(memories);

  EXPECT_LE(memories.read_only_descriptors().size(), 8U);
  EXPECT_EQ(newest_step(memories), 5);
}

TEST(SnapshotMemories, KeepTheMemoryOfTheOnlyWriter) {
  SnapshotMemories memories;
  MemorySnapshots writer = new_writer(memories);
  write(writer, 3);

  memories.forget_old();

  EXPECT_EQ(newest_step(memories), 3);
}

TEST(SnapshotMemories, AreSharedReadOnly) {
  SnapshotMemories memories;
  new_writer(memories);
  std::vector<FileDescriptor> shown = memories.read_only_descriptors();
  ASSERT_EQ(shown.size(), 1U);

  EXPECT_ANY_THROW(SharedMemory::map_writable(std::move(shown[0]), MemorySnapshots::memory_bytes(kSmallSnapshotBytes)));
}

}  // namespace holdfast::recovery
