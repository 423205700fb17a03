#include "train/savepoint_writer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <filesystem>

#include "holdfast/base/error.h"
#include "support/program.h"

namespace holdfast {
namespace {

using namespace std::chrono_literals;

Snapshot snapshot_of(std::int64_t step) {
  Snapshot snapshot;
  snapshot.state.graph = "{}";
  snapshot.state.configuration = "{}";
  snapshot.state.step = step;
  snapshot.arrays.push_back({"model/weights", Shape{3}, {1, 2, static_cast<float>(step)}});
  return snapshot;
}

// Lets writes through only when the test says so.
class Gate {
 public:
  void pass() {
    std::unique_lock lock(mutex_);
    is_waiting_ = true;
    changed_.notify_all();
    changed_.wait(lock, [&] { return is_open_; });
  }
  void wait_for_arrival() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return is_waiting_; });
  }
  void open() {
    const std::lock_guard lock(mutex_);
    is_open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_waiting_ = false;
  bool is_open_ = false;
};

}  // namespace

TEST(SavepointWriter, WritesInOrderAndTellsWhenEachIsDurable) {
  const TemporaryFolder folder;
  std::vector<std::string> calls;
  {
    SavepointWriter writer(posix_file_system());
    for (int step = 0; step < 5; ++step) {
      const std::string name = std::to_string(step);
      writer.submit({folder / name, snapshot_of(step), [&calls, name] { calls.push_back("start " + name); },
                     [&calls, name](const Digest&) { calls.push_back("durable " + name); }},
                    Deadline::after(30s));
    }
    writer.flush(Deadline::after(30s));
  }

  ASSERT_EQ(calls.size(), 10U);
  EXPECT_EQ(calls[8], "start 4");
  EXPECT_EQ(calls[9], "durable 4");
  EXPECT_EQ(read_savepoint(posix_file_system(), folder / "4").arrays[0].values[2], 4.0F);
}

TEST(SavepointWriter, MakesTheThirdWaitByADeadline) {
  const TemporaryFolder folder;
  Gate gate;
  const auto files = watched_file_system(posix_file_system(), [&](const FileOperation& operation) {
    if (operation.name == "sync") gate.pass();
  });
  SavepointWriter writer(*files);
  writer.submit({folder / "a", snapshot_of(1), {}, {}}, Deadline::after(30s));
  gate.wait_for_arrival();
  writer.submit({folder / "b", snapshot_of(2), {}, {}}, Deadline::after(30s));

  EXPECT_THROW(writer.submit({folder / "c", snapshot_of(3), {}, {}}, Deadline::after(10ms)), Error);
  EXPECT_THROW(writer.flush(Deadline::after(10ms)), Error);

  gate.open();
  writer.flush(Deadline::after(30s));
  EXPECT_TRUE(std::filesystem::exists(folder / "b"));
  EXPECT_FALSE(std::filesystem::exists(folder / "c"));
}

TEST(SavepointWriter, ReportsAFailedWriteOnceAndLeavesNothingBehind) {
  const TemporaryFolder folder;
  std::atomic<bool> is_full{true};
  const auto files = watched_file_system(posix_file_system(), [&](const FileOperation& operation) {
    if (operation.name == "write" && is_full) throw system_error(ENOSPC, "cannot write " + operation.path);
  });
  SavepointWriter writer(*files);
  writer.submit({folder / "a", snapshot_of(1), {}, [](const Digest&) { FAIL() << "it is not durable"; }},
                Deadline::after(30s));

  try {
    writer.flush(Deadline::after(30s));
    FAIL() << "the disk was full";
  } catch (const Error& failure) {
    EXPECT_EQ(failure.code(), ErrorCode::disk_full);
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));

  is_full = false;
  writer.submit({folder / "b", snapshot_of(2), {}, {}}, Deadline::after(30s));
  writer.flush(Deadline::after(30s));
  EXPECT_TRUE(std::filesystem::exists(folder / "b"));
}

}  // namespace holdfast
