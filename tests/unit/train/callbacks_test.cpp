#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "holdfast/base/error.h"
#include "holdfast/holdfast.h"
#include "support/played_context.h"
#include "support/program.h"
#include "train/resume.h"

namespace holdfast {
namespace {

// Epochs until it stops, 0 when it does not.
int epochs_until_stop(EarlyStopping& stopping, const std::vector<double>& values) {
  PlayedContext context;
  for (std::size_t epoch = 0; epoch < values.size(); ++epoch) {
    stopping.on_epoch_end(context, {{"val_loss", values[epoch]}});
    if (context.stopped) return static_cast<int>(epoch) + 1;
  }
  return 0;
}

}  // namespace

TEST(EarlyStopping, StopsWhenPatienceIsSpent) {
  EarlyStopping patient({.patience = 2});
  EXPECT_EQ(epochs_until_stop(patient, {5, 4, 4, 4.5, 4, 3}), 5);

  EarlyStopping impatient;
  EXPECT_EQ(epochs_until_stop(impatient, {5, 4, 3, 3}), 4);
}

TEST(EarlyStopping, CountsOnlyImprovementsAboveTheMinimum) {
  EarlyStopping stopping({.min_delta = 0.5, .patience = 1});

  EXPECT_EQ(epochs_until_stop(stopping, {5, 4.8, 4.6}), 3);
}

TEST(EarlyStopping, WatchesForTheHighestWhenAsked) {
  EarlyStopping stopping({.best = Best::highest});

  EXPECT_EQ(epochs_until_stop(stopping, {0.1, 0.2, 0.15}), 3);
}

TEST(EarlyStopping, NeverTakesNanForAnImprovement) {
  EarlyStopping stopping({.patience = 1});

  EXPECT_EQ(epochs_until_stop(stopping, {1, std::nan(""), std::nan("")}), 3);
}

TEST(EarlyStopping, GoesOnWithItsMemoryAfterARestart) {
  EarlyStopping before({.patience = 2});
  EXPECT_EQ(epochs_until_stop(before, {3, 4}), 0);

  EarlyStopping after({.patience = 2});
  after.restore(before.state());

  EXPECT_EQ(epochs_until_stop(after, {5, 6}), 2);
}

TEST(EarlyStopping, NamesTheLogsThatThereAre) {
  EarlyStopping stopping({.monitor = "accuracy"});
  PlayedContext context;

  try {
    stopping.on_epoch_end(context, {{"loss", 1}, {"val_loss", 2}});
    FAIL() << "nothing was wrong";
  } catch (const Error& failure) {
    EXPECT_NE(std::string(failure.what()).find("loss, val_loss"), std::string::npos) << failure.what();
  }
}

TEST(ModelCheckpoint, KeepsTheLastOnesAndNothingElseIsDeleted) {
  const TemporaryFolder folder;
  posix_file_system().create(folder / "savepoint-mine.h5");
  PlayedContext context;
  context.directory = folder.path();
  ModelCheckpoint checkpoint({.every_steps = 5, .keep_last = 2});

  for (context.step_number = 1; context.step_number <= 23; ++context.step_number) checkpoint.on_step_end(context, {});

  EXPECT_EQ(list_savepoints(posix_file_system(), folder.path()),
            (std::vector<std::string>{savepoint_name(15), savepoint_name(20)}));
  EXPECT_TRUE(std::filesystem::exists(folder / "savepoint-mine.h5"));
}

TEST(ModelCheckpoint, SavesEachEpochAndAtTheEnd) {
  const TemporaryFolder folder;
  PlayedContext context;
  context.directory = folder.path();
  ModelCheckpoint checkpoint({.every_epochs = 2});

  for (; context.epoch_number < 4; ++context.epoch_number) {
    context.step_number += 10;
    checkpoint.on_epoch_end(context, {});
  }
  context.step_number += 3;
  checkpoint.on_fit_end(context, {});

  EXPECT_EQ(context.saved, (std::vector<std::string>{folder / savepoint_name(20), folder / savepoint_name(40),
                                                     folder / savepoint_name(43)}));
}

TEST(ModelCheckpoint, KeepsTheBestByAMetricAlsoAcrossARestart) {
  const TemporaryFolder folder;
  PlayedContext context;
  context.directory = folder.path();
  const ModelCheckpointOptions options{.every_epochs = 0, .best_by = "val_accuracy", .best = Best::highest};
  ModelCheckpoint before(options);
  before.on_epoch_end(context, {{"val_accuracy", 0.5}});
  ModelCheckpoint after(options);
  after.restore(before.state());
  std::filesystem::remove(folder / "best-val_accuracy.h5");

  after.on_epoch_end(context, {{"val_accuracy", 0.4}});
  EXPECT_EQ(context.saved.size(), 1U);
  after.on_epoch_end(context, {{"val_accuracy", 0.6}});

  EXPECT_EQ(context.saved,
            (std::vector<std::string>{folder / "best-val_accuracy.h5", folder / "best-val_accuracy.h5"}));
}

TEST(ModelCheckpoint, NeedsADirectoryWhereNobodySupervises) {
  PlayedContext context;
  ModelCheckpoint checkpoint;

  EXPECT_THROW(checkpoint.on_fit_end(context, {}), Error);
  EXPECT_THROW(ModelCheckpoint({.keep_last = -1}), Error);
}

}  // namespace holdfast
