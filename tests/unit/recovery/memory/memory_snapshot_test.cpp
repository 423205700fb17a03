// Snapshots in shared memory. A writer may die at any byte; the reader must find the last whole snapshot.

#include "holdfast/recovery/memory_snapshot.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "support/text/written_text.h"

namespace holdfast::recovery {
namespace {

constexpr std::size_t kSnapshotBytes = 200'000;

// The watchdog's memory, and a writer's mapping of it.
class MemorySnapshotsTest : public testing::Test {
 protected:
  MemorySnapshotsTest()
      : memory_(SharedMemory::create("test-snapshots", MemorySnapshots::memory_bytes(kSnapshotBytes))),
        writer_(SharedMemory::map_writable(descriptor(), memory_.size_bytes())) {}

  FileDescriptor descriptor() const { return FileDescriptor(::dup(memory_.descriptor())); }

  void write(std::int64_t step, const std::string& text) {
    EXPECT_TRUE(writer_.write(3, step, text.size(), pieces_of(text), [&](std::span<const std::byte> copied) {
      return std::equal(copied.begin(), copied.end(), std::as_bytes(std::span(text)).begin());
    }));
  }

  // "STEP: TEXT" of the newest whole snapshot.
  std::string newest() const {
    const auto whole = MemorySnapshots::newest(memory_);
    if (!whole) return "none";
    return std::to_string(whole->step) + ": " +
           std::string(reinterpret_cast<const char*>(whole->bytes.data()), whole->bytes.size());
  }

  SharedMemory memory_;
  MemorySnapshots writer_;
};

std::string long_text(char letter) {
  return std::string(kSnapshotBytes, letter);
}

TEST_F(MemorySnapshotsTest, HoldNothingAtFirst) {
  EXPECT_EQ(newest(), "none");
}

TEST_F(MemorySnapshotsTest, GiveBackTheNewest) {
  for (std::int64_t step = 1; step <= 5; ++step) {
    write(step, "state " + std::to_string(step));
    EXPECT_EQ(newest(), std::to_string(step) + ": state " + std::to_string(step));
  }
  EXPECT_EQ(MemorySnapshots::newest(memory_)->generation, 3);
}

TEST_F(MemorySnapshotsTest, HoldAsMuchAsRequested) {
  ASSERT_GE(writer_.capacity_bytes(), kSnapshotBytes);

  write(1, long_text('a'));
  write(2, long_text('b'));

  EXPECT_EQ(newest(), "2: " + long_text('b'));
}

TEST_F(MemorySnapshotsTest, StayWhenTheirMemoryIsTouched) {
  write(1, long_text('a'));
  write(2, long_text('b'));

  writer_.find_memory(kSnapshotBytes);

  EXPECT_EQ(newest(), "2: " + long_text('b'));
}

// Changes any byte of the newest snapshot, like a writer that dies in the middle.
TEST_F(MemorySnapshotsTest, GiveBackTheOneBeforeATornOne) {
  write(1, long_text('a'));
  write(2, long_text('b'));
  const std::byte* begin = MemorySnapshots::newest(memory_)->bytes.data();
  const auto offset = static_cast<std::size_t>(begin - memory_.readable().data());

  for (const std::size_t byte : {std::size_t{0}, kSnapshotBytes / 2, kSnapshotBytes - 1}) {
    memory_.writable()[offset + byte] ^= std::byte{1};
    EXPECT_EQ(newest(), "1: " + long_text('a'));
    memory_.writable()[offset + byte] ^= std::byte{1};
  }
  EXPECT_EQ(newest(), "2: " + long_text('b'));
}

// A run that goes back computes the same states again, so the newest snapshot is still right.
TEST_F(MemorySnapshotsTest, KeepTheNewestWhenTheRunGoesBack) {
  write(8, "later");
  write(9, "last");
  write(4, "earlier");
  write(6, "in between");

  EXPECT_EQ(newest(), "9: last");
}

TEST_F(MemorySnapshotsTest, LeaveOutARefusedSnapshot) {
  write(1, "first");
  const std::string text = "changed meanwhile";

  EXPECT_FALSE(writer_.write(3, 2, text.size(), pieces_of(text), [](std::span<const std::byte>) { return false; }));

  EXPECT_EQ(newest(), "1: first");
}

TEST_F(MemorySnapshotsTest, MayBeFilledByTheCaller) {
  write(1, "first");
  const std::string text = "second";

  const std::span<std::byte> target = writer_.begin(text.size());
  std::copy_n(std::as_bytes(std::span(text)).begin(), text.size(), target.begin());
  EXPECT_EQ(newest(), "1: first") << "before it is finished";
  EXPECT_TRUE(writer_.finish(4, 2));

  EXPECT_EQ(newest(), "2: second");
  EXPECT_EQ(MemorySnapshots::newest(memory_)->generation, 4);
}

TEST_F(MemorySnapshotsTest, DoNotIncludeAnUnfinishedOne) {
  write(1, "first");
  write(2, "second");

  writer_.begin(5);
  EXPECT_EQ(newest(), "2: second") << "the older slot is the one that is filled";
  write(3, "third");

  EXPECT_EQ(newest(), "3: third");
}

TEST_F(MemorySnapshotsTest, AreNotFoundInArbitraryBytes) {
  for (std::byte& byte : memory_.writable()) byte = std::byte{0xFF};
  EXPECT_EQ(newest(), "none");

  const SharedMemory tiny = SharedMemory::create("test-tiny", 10);
  EXPECT_FALSE(MemorySnapshots::newest(tiny));
}

}  // namespace
}  // namespace holdfast::recovery
