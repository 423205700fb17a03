// The writer is tested without a training: requests are made by the test, and gates in the file system decide when the
// storage goes on, so nothing sleeps.

#include "train/saving/savepoint_writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <filesystem>
#include <numeric>
#include <set>

#include "holdfast/base/error.h"
#include "holdfast/format/array_file.h"
#include "support/gate.h"
#include "support/program.h"

namespace holdfast {
namespace {

using namespace std::chrono_literals;

using Kind = SavepointEvent::Kind;

Snapshot snapshot_of(std::int64_t step, std::int64_t more_values = 0) {
  Snapshot snapshot;
  snapshot.state.graph = "{}";
  snapshot.state.configuration = "{}";
  snapshot.state.step = step;
  const std::vector<float> weights{1, 2, static_cast<float>(step)};
  std::copy(weights.begin(), weights.end(), snapshot.add("model/weights", Shape{3}).begin());
  if (more_values > 0) {
    const std::span<float> more = snapshot.add("model/more", Shape{more_values});
    std::iota(more.begin(), more.end(), 0.0F);
  }
  return snapshot;
}

SavepointWriter::Request request_of(const std::string& path, std::int64_t step, const SaveOptions& options = {}) {
  return {.path = path, .step = step, .take_snapshot = [step] { return snapshot_of(step); }, .options = options};
}

// A state of 2.6 million values, which take several threads some time.
SavepointWriter::Request large_request(const std::string& path, const SaveOptions& options) {
  return {.path = path,
          .step = 1,
          .take_snapshot = [] { return snapshot_of(1, std::int64_t{5} << 19); },
          .options = options};
}

std::vector<Kind> kinds_of(const std::vector<SavepointEvent>& events) {
  std::vector<Kind> kinds;
  for (const SavepointEvent& event : events) kinds.push_back(event.kind);
  return kinds;
}

const SavepointEvent& find(const std::vector<SavepointEvent>& events, Kind kind) {
  const auto found = std::find_if(events.begin(), events.end(), [&](const auto& event) { return event.kind == kind; });
  if (found == events.end()) throw std::runtime_error("there is no event " + std::string(to_string(kind)));
  return *found;
}

// Two savepoints are under way on a storage that does nothing until the test opens the gate.
class SlowStorage : public ::testing::Test {
 protected:
  SlowStorage() {
    writer_.submit(request_of(folder_ / "a", 1), Deadline::after(30s));
    gate_.wait_for_arrival();
    writer_.submit(request_of(folder_ / "b", 2), Deadline::after(30s));
  }
  ~SlowStorage() override { gate_.open(); }

  const TemporaryFolder folder_;
  Gate gate_;
  std::unique_ptr<FileSystem> files_ = watched_file_system(posix_file_system(), [this](const FileOperation& operation) {
    if (operation.name == "sync") gate_.pass();
  });
  SavepointWriter writer_{*files_};
};

TEST(SavepointWriter, WritesInOrderAndReportsWhenEachIsDurable) {
  const TemporaryFolder folder;
  std::vector<std::string> calls;
  {
    SavepointWriter writer(posix_file_system());
    for (int step = 0; step < 5; ++step) {
      const std::string name = std::to_string(step);
      EXPECT_TRUE(writer.submit(
          request_of(folder / name, step, {.when_durable = [&calls, name] { calls.push_back("durable " + name); }}),
          Deadline::after(30s)));
    }
    writer.flush(Deadline::after(30s));
  }

  EXPECT_EQ(calls, (std::vector<std::string>{"durable 0", "durable 1", "durable 2", "durable 3", "durable 4"}));
  EXPECT_EQ(read_savepoint(posix_file_system(), folder / "4").arrays[0].values[2], 4.0F);
}

TEST(SavepointWriter, ReportsTimeAndSizeOfASavepoint) {
  const TemporaryFolder folder;
  SavepointWriter writer(posix_file_system());
  writer.submit(request_of(folder / "a", 7), Deadline::after(30s));
  writer.flush(Deadline::after(30s));

  const std::vector<SavepointEvent> events = writer.take_events();

  ASSERT_EQ(kinds_of(events), (std::vector<Kind>{Kind::started, Kind::progress, Kind::durable}));
  const SavepointEvent& durable = events.back();
  EXPECT_EQ(durable.path, folder / "a");
  EXPECT_EQ(durable.step, 7);
  EXPECT_EQ(durable.file_bytes, std::filesystem::file_size(folder / "a"));
  EXPECT_EQ(durable.digest, format::ArrayFile::open(posix_file_system(), folder / "a").file_digest());
  EXPECT_EQ(durable.done_bytes, durable.total_bytes);
  EXPECT_DOUBLE_EQ(durable.ratio, static_cast<double>(durable.total_bytes) / static_cast<double>(durable.file_bytes));
  EXPECT_TRUE(writer.take_events().empty());
}

TEST(SavepointWriter, KeepsOnlyTheNewestProgress) {
  const TemporaryFolder folder;
  std::atomic<int> told = 0;
  SavepointWriter writer(posix_file_system(),
                         [&](const SavepointEvent& event) { told += event.kind == Kind::progress ? 1 : 0; });
  writer.submit(large_request(folder / "a", {}), Deadline::after(30s));
  writer.flush(Deadline::after(30s));

  const std::vector<SavepointEvent> events = writer.take_events();

  EXPECT_GT(told, 5);
  ASSERT_EQ(kinds_of(events), (std::vector<Kind>{Kind::started, Kind::progress, Kind::durable}));
  EXPECT_EQ(events[1].done_bytes, events[1].total_bytes);
}

TEST_F(SlowStorage, MakesTheThirdWaitUntilTheDeadline) {
  EXPECT_THROW(writer_.submit(request_of(folder_ / "c", 3), Deadline::after(10ms)), Error);
  EXPECT_THROW(writer_.flush(Deadline::after(10ms)), Error);

  gate_.open();
  writer_.flush(Deadline::after(30s));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "b"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "c"));
  EXPECT_EQ(find(writer_.take_events(), Kind::failed).path, folder_ / "c");
}

// The storage wakes up once training has begun to wait.
TEST_F(SlowStorage, ReportsHowLongTheThirdWaited) {
  EXPECT_TRUE(writer_.submit(request_of(folder_ / "c", 3), Deadline::after(30s), [&] { gate_.open(); }));
  writer_.flush(Deadline::after(30s));

  const std::vector<SavepointEvent> events = writer_.take_events();
  const SavepointEvent& waited = find(events, Kind::waited);
  EXPECT_EQ(waited.path, folder_ / "c");
  EXPECT_EQ(waited.step, 3);
  EXPECT_GT(waited.seconds, 0);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "c"));
}

TEST_F(SlowStorage, IsWaitedForWithSignsOfLife) {
  int signs = 0;

  writer_.submit(request_of(folder_ / "c", 3), Deadline::after(30s), [&] {
    if (++signs == 2) gate_.open();
  });

  EXPECT_GE(signs, 2);
}

TEST_F(SlowStorage, SkipsTheThirdIfTheOptionsSaySoAndReportsIt) {
  SavepointWriter::Request third = request_of(folder_ / "c", 3, {.when_storage_is_slow = WhenStorageIsSlow::skip});
  third.options.when_durable = [] { FAIL() << "it was made"; };
  third.take_snapshot = []() -> Snapshot { throw std::runtime_error("a third copy of the state was made"); };

  EXPECT_FALSE(writer_.submit(std::move(third), Deadline::after(30s)));

  const std::vector<SavepointEvent> events = writer_.take_events();
  const SavepointEvent& skipped = find(events, Kind::skipped);
  EXPECT_EQ(skipped.path, folder_ / "c");
  EXPECT_EQ(skipped.step, 3);
  EXPECT_NE(skipped.why.find(folder_ / "a"), std::string::npos) << skipped.why;
  gate_.open();
  writer_.flush(Deadline::after(30s));
  EXPECT_EQ(folder_.names(), (std::vector<std::string>{"a", "b"}));
}

TEST(SavepointWriter, SkipsNothingWhileThereIsRoom) {
  const TemporaryFolder folder;
  SavepointWriter writer(posix_file_system());

  for (int step = 0; step < 4; ++step) {
    EXPECT_TRUE(writer.submit(
        request_of(folder / std::to_string(step), step, {.when_storage_is_slow = WhenStorageIsSlow::skip}),
        Deadline::after(30s)));
    writer.flush(Deadline::after(30s));
  }

  EXPECT_EQ(folder.names().size(), 4U);
}

TEST(SavepointWriter, ReportsAFailedWriteOnceAndLeavesNoFile) {
  const TemporaryFolder folder;
  std::atomic<bool> is_full{true};
  const auto files = watched_file_system(posix_file_system(), [&](const FileOperation& operation) {
    if (operation.name == "write" && is_full) throw system_error(ENOSPC, "cannot write " + operation.path);
  });
  SavepointWriter writer(*files);
  writer.submit(request_of(folder / "a", 1, {.when_durable = [] { FAIL() << "it is not durable"; }}),
                Deadline::after(30s));

  try {
    writer.flush(Deadline::after(30s));
    FAIL() << "the disk was full";
  } catch (const Error& failure) {
    EXPECT_EQ(failure.code(), ErrorCode::disk_full);
    EXPECT_EQ(find(writer.take_events(), Kind::failed).why, failure.what());
  }
  EXPECT_NO_THROW(writer.check());
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));

  is_full = false;
  writer.submit(request_of(folder / "b", 2), Deadline::after(30s));
  writer.flush(Deadline::after(30s));
  EXPECT_TRUE(std::filesystem::exists(folder / "b"));
}

TEST(SavepointWriter, WritesAStateThatArrivesLater) {
  const TemporaryFolder folder;
  SavepointWriter writer(posix_file_system());
  Gate gate;
  SavepointWriter::Request request = request_of(folder / "a", 1);
  request.take_snapshot = [&] {
    Snapshot snapshot = snapshot_of(1);
    float* const weights = snapshot.memory.front().get();
    snapshot.arrive = [&gate, weights] {
      gate.pass();
      weights[0] = 77;
    };
    return snapshot;
  };

  writer.submit(std::move(request), Deadline::after(30s));
  gate.wait_for_arrival();
  EXPECT_FALSE(std::filesystem::exists(folder / "a"));
  gate.open();
  writer.flush(Deadline::after(30s));

  EXPECT_EQ(read_savepoint(posix_file_system(), folder / "a").arrays.front().values[0], 77.0F);
}

// Training goes on from that state, so this failure is more than a failure of the storage.
TEST(SavepointWriter, RethrowsThatAStateDidNotArriveEvenIfFailedWritesAreIgnored) {
  const TemporaryFolder folder;
  SavepointWriter writer(posix_file_system());
  std::string why;
  SavepointWriter::Request request = request_of(folder / "a", 1);
  request.when_failed = [&](const std::string& reason) { why = reason; };
  request.take_snapshot = [] {
    Snapshot snapshot = snapshot_of(1);
    snapshot.arrive = [] { throw Error(ErrorCode::diverged, "another state arrived"); };
    return snapshot;
  };

  writer.submit(std::move(request), Deadline::after(30s));

  EXPECT_THROW(writer.flush(Deadline::after(30s)), Error);
  EXPECT_EQ(why, "another state arrived");
  EXPECT_FALSE(std::filesystem::exists(folder / "a"));
}

TEST(SavepointWriter, WritesInTheGivenNumberOfThreads) {
  for (const std::size_t threads : {1U, 3U}) {
    const TemporaryFolder folder;
    std::mutex mutex;
    std::condition_variable changed;
    std::set<std::thread::id> seen;
    // Each waits until all are there, so that no thread can do the work of another.
    const auto files = watched_file_system(posix_file_system(), [&](const FileOperation& operation) {
      if (operation.name != "write") return;
      std::unique_lock lock(mutex);
      seen.insert(std::this_thread::get_id());
      changed.notify_all();
      changed.wait_for(lock, 30s, [&] { return seen.size() >= threads; });
    });
    SavepointWriter writer(*files);

    writer.submit(large_request(folder / "a", {.threads = static_cast<int>(threads)}), Deadline::after(60s));
    writer.flush(Deadline::after(60s));

    EXPECT_EQ(seen.size(), threads);
  }
}

TEST(SavepointWriter, CompressesAsTheOptionsSay) {
  const TemporaryFolder folder;
  SavepointWriter writer(posix_file_system());

  writer.submit(large_request(folder / "fast", {}), Deadline::after(30s));
  writer.submit(large_request(folder / "none", {.compression = SavepointCompression::none}), Deadline::after(30s));
  writer.submit(large_request(folder / "zstd", {.compression = SavepointCompression::zstd, .zstd_level = 3}),
                Deadline::after(30s));
  writer.flush(Deadline::after(30s));

  const auto storage = [&](const std::string& name) {
    return format::ArrayFile::open(posix_file_system(), folder / name).find("model/more")->storage;
  };
  EXPECT_EQ(storage("fast"), format::Storage::zstd);
  EXPECT_EQ(storage("none"), format::Storage::contiguous);
  EXPECT_EQ(storage("zstd"), format::Storage::zstd);
  EXPECT_NE(read_file(folder / "zstd"), read_file(folder / "fast"));
}

// Whatever it chooses, it reports the choice, and the file is of that kind.
TEST(SavepointWriter, MeasuresOnceWhatAutomaticMeans) {
  const TemporaryFolder folder;
  SavepointWriter writer(posix_file_system());
  const SaveOptions automatic{.compression = SavepointCompression::automatic};

  writer.submit(large_request(folder / "a", automatic), Deadline::after(30s));
  writer.submit(large_request(folder / "b", automatic), Deadline::after(30s));
  writer.flush(Deadline::after(30s));

  const std::vector<SavepointEvent> events = writer.take_events();
  const std::vector<Kind> kinds = kinds_of(events);
  EXPECT_EQ(std::count(kinds.begin(), kinds.end(), Kind::compression_chosen), 1);
  const SavepointEvent& chosen = find(events, Kind::compression_chosen);
  EXPECT_EQ(chosen.path, folder / "compression.json");
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"a", "b", "compression.json"}));
  const bool is_plain = chosen.why.starts_with("none");
  for (const std::string name : {"a", "b"}) {
    EXPECT_EQ(format::ArrayFile::open(posix_file_system(), folder / name).find("model/more")->storage,
              is_plain ? format::Storage::contiguous : format::Storage::zstd)
        << chosen.why;
  }
}

}  // namespace
}  // namespace holdfast
