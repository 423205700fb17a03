// Gates in the file system hold an operation, so that the test can look at what the watchdog is shown meanwhile.

#include "train/saving/saving_watch.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <thread>

#include "support/gate.h"
#include "support/temporary_folder.h"
#include "support/text_bytes.h"
#include "train/saving/savepoint_writer.h"

namespace holdfast {
namespace {

using namespace std::chrono_literals;

// Records what the watchdog is shown, in order; "" means that the work has ended.
class Told final : public NoSupervision {
 public:
  void enter_background(const BackgroundWork& work) override {
    const std::lock_guard lock(mutex_);
    works_.push_back(work);
  }
  void leave_background() override { enter_background({}); }

  BackgroundWork last() {
    const std::lock_guard lock(mutex_);
    return works_.empty() ? BackgroundWork{} : works_.back();
  }
  std::vector<std::string> all() {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> all;
    for (const BackgroundWork& work : works_) all.push_back(work.what);
    return all;
  }

 private:
  std::mutex mutex_;
  std::deque<BackgroundWork> works_;  // guarded by mutex_
};

class SavingWatchTest : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_ / name; }

  const TemporaryFolder folder_;
  const std::shared_ptr<Told> told_ = std::make_shared<Told>();
  const std::shared_ptr<SavingWatch> watch_ = std::make_shared<SavingWatch>(told_);
};

TEST_F(SavingWatchTest, ShowsEachOperationAndTheWorkBetweenThem) {
  const auto files = watch_->over(posix_file_system());

  files->create(path("before"));
  watch_->enter({.what = "the writing of a"});
  files->create(path("a"))->write_at(0, bytes_of("hold"));
  files->rename(path("a"), path("b"));
  watch_->leave();
  files->remove(path("b"));

  const std::string work = "the writing of a";
  EXPECT_EQ(told_->all(), (std::vector<std::string>{work, "create of " + path("a"), work, "write of " + path("a"), work,
                                                    "rename of " + path("a") + " to " + path("b"), work, ""}));
}

TEST_F(SavingWatchTest, CountsForAnFsyncTheBytesWrittenSinceTheLastOne) {
  std::vector<std::uint64_t> bytes;
  const auto inner = watched_file_system(posix_file_system(), [&](const FileOperation& operation) {
    if (operation.name == "sync") bytes.push_back(told_->last().bytes);
  });
  const auto files = watch_->over(*inner);
  watch_->enter({.what = "the writing of a"});
  const std::unique_ptr<File> a = files->create(path("a"));
  const std::unique_ptr<File> b = files->create(path("b"));

  a->write_at(0, bytes_of("hold"));
  a->write_at(4, bytes_of("fast"));
  b->write_at(0, bytes_of("x"));
  a->sync();
  a->sync();
  b->sync();

  EXPECT_EQ(bytes, (std::vector<std::uint64_t>{8, 0, 1}));
}

// The operations that go on would make it look as if there were progress.
TEST_F(SavingWatchTest, ShowsTheOldestOfSeveralOperationsThoughOthersGoOn) {
  Gate gate;
  const auto stuck = watched_file_system(posix_file_system(), [&](const FileOperation& operation) {
    if (operation.path == path("stuck") && operation.name == "write") gate.pass();
  });
  const auto files = watch_->over(*stuck);
  watch_->enter({.what = "the writing of savepoints"});
  const std::unique_ptr<File> file = files->create(path("stuck"));
  std::thread writer([&] { file->write_at(0, bytes_of("hold")); });
  gate.wait_for_arrival();
  const std::size_t told_before = told_->all().size();

  files->create(path("other"))->write_at(0, bytes_of("x"));

  EXPECT_EQ(told_->last().what, "write of " + path("stuck"));
  EXPECT_EQ(told_->last().bytes, 4U);
  EXPECT_EQ(told_->all().size(), told_before);
  gate.open();
  writer.join();
  EXPECT_EQ(told_->last().what, "the writing of savepoints");
}

TEST_F(SavingWatchTest, ShowsWhereTheWriterHangs) {
  Gate gate;
  const auto stuck = watched_file_system(posix_file_system(), [&](const FileOperation& operation) {
    if (operation.name == "sync_folder") gate.pass();
  });
  const auto files = watch_->over(*stuck);
  SavepointWriter writer(*files, {}, watch_);
  BackgroundWork when_durable;
  const auto take = [] {
    Snapshot snapshot;
    snapshot.state.graph = "{}";
    snapshot.state.configuration = "{}";
    snapshot.add("model/weights", Shape{1})[0] = 1;
    return snapshot;
  };
  EXPECT_EQ(told_->last().what, "");

  writer.submit({.path = path("savepoint"),
                 .step = 7,
                 .take_snapshot = take,
                 .options = {.when_durable = [&] { when_durable = told_->last(); }}},
                Deadline::after(30s));
  gate.wait_for_arrival();

  EXPECT_EQ(told_->last().what, "fsync of the folder " + folder_.path());
  gate.open();
  writer.flush(Deadline::after(30s));
  EXPECT_TRUE(when_durable.is_callback);
  EXPECT_EQ(when_durable.what, "the work that follows once " + path("savepoint") + " is durable");
  EXPECT_EQ(told_->last().what, "");
}

}  // namespace
}  // namespace holdfast
