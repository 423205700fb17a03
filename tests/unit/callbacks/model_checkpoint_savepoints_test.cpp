// What ModelCheckpoint decides from logs that the test makes up, without any training. Files are real, so that
// retention is tested with the savepoints that it would meet.

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "holdfast/base/error.h"
#include "holdfast/format/catalogue.h"
#include "holdfast/holdfast.h"
#include "support/played_context.h"
#include "support/program.h"
#include "support/thrown.h"
#include "train/state/resume.h"

namespace holdfast {
namespace {

// A training that writes whole savepoints, with the logs of their epochs.
class SavingContext {
 public:
  explicit SavingContext(const TemporaryFolder& folder) {
    context.directory = folder.path();
    context.write = [this](const std::string& path) {
      Snapshot snapshot;
      snapshot.state.graph = "{}";
      snapshot.state.configuration = "{}";
      snapshot.state.step = context.step_number;
      CallRecord fit;
      fit.kind = "fit";
      fit.data = "{}";
      fit.history = {logs_};
      snapshot.state.calls = {fit};
      write_savepoint(posix_file_system(), path, snapshot);
    };
  }

  // Goes on by ten steps.
  void end_epoch(ModelCheckpoint& checkpoint, const Logs& logs) {
    context.step_number += 10;
    logs_ = logs;
    checkpoint.on_epoch_end(context, logs);
    ++context.epoch_number;
  }

  PlayedContext context;

 private:
  Logs logs_;
};

std::vector<std::int64_t> saved_steps(const TemporaryFolder& folder) {
  std::vector<std::int64_t> steps;
  for (const auto& entry : format::list_savepoints(posix_file_system(), folder.path())) steps.push_back(entry.step);
  return steps;
}

}  // namespace

TEST(ModelCheckpoint, KeepsTheLastOnesAndDeletesNoOtherFiles) {
  const TemporaryFolder folder;
  posix_file_system().create(folder / "savepoint-mine.h5");
  SavingContext training(folder);
  PlayedContext& context = training.context;
  ModelCheckpoint checkpoint({.every_steps = 5, .keep_last = 2});

  for (context.step_number = 1; context.step_number <= 23; ++context.step_number) checkpoint.on_step_end(context, {});

  EXPECT_EQ(saved_steps(folder), (std::vector<std::int64_t>{15, 20}));
  EXPECT_TRUE(std::filesystem::exists(folder / "savepoint-mine.h5"));
}

TEST(ModelCheckpoint, SavesEachEpochAndAtTheEnd) {
  const TemporaryFolder folder;
  SavingContext training(folder);
  ModelCheckpoint checkpoint({.every_epochs = 2});

  for (int epoch = 0; epoch < 4; ++epoch) training.end_epoch(checkpoint, {});
  training.context.step_number += 3;
  checkpoint.on_fit_end(training.context, {});

  EXPECT_EQ(training.context.saved, (std::vector<std::string>{folder / savepoint_name(20), folder / savepoint_name(40),
                                                              folder / savepoint_name(43)}));
}

TEST(ModelCheckpoint, KeepsTheBestBesidesTheLast) {
  const TemporaryFolder folder;
  SavingContext training(folder);
  ModelCheckpoint checkpoint({.keep_last = 1, .best_by = "val_loss", .keep_best = 2});

  for (const double loss : {0.5, 0.2, 0.3, 0.9, 0.8}) training.end_epoch(checkpoint, {{"val_loss", loss}});

  EXPECT_EQ(saved_steps(folder), (std::vector<std::int64_t>{20, 30, 50}));
}

TEST(ModelCheckpoint, NamesTheBestOfWhatItKept) {
  const TemporaryFolder folder;
  SavingContext training(folder);
  ModelCheckpoint checkpoint({.keep_last = 2, .best_by = "val_loss"});
  for (const double loss : {std::nan(""), 0.5, 0.2, 0.3, 0.2, 0.8}) {
    training.end_epoch(checkpoint, {{"val_loss", loss}, {"loss", -loss}});
  }

  EXPECT_EQ(best_savepoint(folder.path(), "val_loss"), folder / savepoint_name(30));
  EXPECT_EQ(best_savepoint(folder.path(), "val_loss", Best::highest), folder / savepoint_name(60));

  std::filesystem::resize_file(folder / savepoint_name(30), 40);
  EXPECT_EQ(best_savepoint(folder.path(), "val_loss"), folder / savepoint_name(50));
  EXPECT_EQ(code_thrown_by([&] { best_savepoint(folder.path(), "accuracy"); }), ErrorCode::not_found);
  EXPECT_EQ(code_thrown_by([&] { best_savepoint(folder.path(), "mood"); }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_thrown_by([&] { best_savepoint(folder / "none", "val_loss"); }), ErrorCode::not_found);
}

TEST(ModelCheckpoint, SavesOnlyTheBestWhenAskedForNothingElse) {
  const TemporaryFolder folder;
  SavingContext training(folder);
  ModelCheckpoint checkpoint(
      {.every_epochs = 0, .keep_last = 1, .best_by = "val_accuracy", .best = Best::highest, .keep_best = 1});

  for (const double accuracy : {std::nan(""), 0.5, 0.4, 0.5, 0.6, 0.1}) {
    training.end_epoch(checkpoint, {{"val_accuracy", accuracy}});
  }

  EXPECT_EQ(training.context.saved,
            (std::vector<std::string>{folder / savepoint_name(20), folder / savepoint_name(50)}));
  EXPECT_EQ(saved_steps(folder), (std::vector<std::int64_t>{50}));
}

TEST(ModelCheckpoint, RemembersTheBestAcrossARestart) {
  const TemporaryFolder folder;
  SavingContext training(folder);
  const ModelCheckpointOptions options{
      .every_epochs = 0, .keep_last = 1, .best_by = "val_accuracy", .best = Best::highest};
  ModelCheckpoint before(options);
  training.end_epoch(before, {{"val_accuracy", 0.5}});
  ModelCheckpoint after(options);
  after.restore(before.state());

  training.end_epoch(after, {{"val_accuracy", 0.4}});
  EXPECT_EQ(saved_steps(folder), (std::vector<std::int64_t>{10}));
  training.end_epoch(after, {{"val_accuracy", 0.6}});

  EXPECT_EQ(saved_steps(folder), (std::vector<std::int64_t>{30}));
}

TEST(ModelCheckpoint, KeepsABetterBestAfterGoingBack) {
  const TemporaryFolder folder;
  SavingContext training(folder);
  const ModelCheckpointOptions options{.keep_last = 1, .best_by = "loss"};
  ModelCheckpoint before(options);
  for (const double loss : {0.9, 0.1}) training.end_epoch(before, {{"loss", loss}});

  // A restart from an older copy, which does not know the value 0.1.
  ModelCheckpoint after(options);
  training.context.step_number = 5;
  for (const double loss : {0.8, 0.7}) training.end_epoch(after, {{"loss", loss}});

  EXPECT_EQ(saved_steps(folder), (std::vector<std::int64_t>{20, 25}));
}

TEST(ModelCheckpoint, KeepsSomePermanentlyWithinABudget) {
  const TemporaryFolder folder;
  SavingContext training(folder);
  ModelCheckpoint checkpoint({.keep_last = 0, .keep_every_steps = 20, .max_bytes = 1});

  for (int epoch = 0; epoch < 5; ++epoch) training.end_epoch(checkpoint, {});

  EXPECT_EQ(saved_steps(folder), (std::vector<std::int64_t>{20, 40, 50}));
}

TEST(ModelCheckpoint, SkipsOnlyWhatTheNextOneMakesUpFor) {
  const TemporaryFolder folder;
  SavingContext training(folder);
  ModelCheckpoint checkpoint(
      {.best_by = "loss", .keep_every_steps = 40, .when_storage_is_slow = WhenStorageIsSlow::skip});

  for (const double loss : {0.5, 0.9, 0.3, 0.8, 0.7}) training.end_epoch(checkpoint, {{"loss", loss}});
  checkpoint.on_fit_end(training.context, {});

  std::vector<WhenStorageIsSlow> asked;
  for (const SaveOptions& options : training.context.asked) asked.push_back(options.when_storage_is_slow);
  using enum WhenStorageIsSlow;
  // The best so far, an ordinary one, the best, one that is always kept, an ordinary one, the last.
  EXPECT_EQ(asked, (std::vector{wait, skip, wait, wait, skip, wait}));
}

TEST(ModelCheckpoint, WaitsUnlessItIsToldToSkip) {
  const TemporaryFolder folder;
  SavingContext training(folder);
  ModelCheckpoint checkpoint;

  training.end_epoch(checkpoint, {});

  EXPECT_EQ(training.context.asked.at(0).when_storage_is_slow, WhenStorageIsSlow::wait);
}

TEST(ModelCheckpoint, PassesItsCompressionAndThreadsOn) {
  const TemporaryFolder folder;
  SavingContext training(folder);
  training.context.threads = 3;
  ModelCheckpoint own({.compression = SavepointCompression::zstd, .zstd_level = 7, .threads = 2});
  ModelCheckpoint shared;

  training.end_epoch(own, {});
  training.end_epoch(shared, {});

  const std::vector<SaveOptions>& asked = training.context.asked;
  EXPECT_EQ(asked.at(0).compression, SavepointCompression::zstd);
  EXPECT_EQ(asked.at(0).zstd_level, 7);
  EXPECT_EQ(asked.at(0).threads, 2);
  EXPECT_EQ(asked.at(1).compression, SavepointCompression::fast);
  EXPECT_EQ(asked.at(1).threads, 3);
}

TEST(ModelCheckpoint, NeedsADirectoryWithoutAWatchdog) {
  PlayedContext context;
  ModelCheckpoint checkpoint;

  EXPECT_THROW(checkpoint.on_fit_end(context, {}), Error);
  EXPECT_THROW(ModelCheckpoint({.keep_last = -1}), Error);
  EXPECT_THROW(ModelCheckpoint({.keep_best = -1}), Error);
  EXPECT_THROW(ModelCheckpoint({.keep_every_steps = -1}), Error);
  EXPECT_THROW(ModelCheckpoint({.threads = -1}), Error);
}

}  // namespace holdfast
