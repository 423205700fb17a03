#include "holdfast/train/early_stopping.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "holdfast/base/error.h"
#include "support/played_context.h"
#include "support/thrown.h"
#include "unit/callbacks/support/logged_lines.h"

namespace holdfast {
namespace {

// The epochs until it stops; 0 if it does not stop.
int epochs_until_stop(EarlyStopping& stopping, const std::vector<double>& values) {
  PlayedContext context;
  for (std::size_t epoch = 0; epoch < values.size(); ++epoch) {
    stopping.on_epoch_end(context, {{"val_loss", values[epoch]}});
    ++context.epoch_number;
    if (context.stopped) return static_cast<int>(epoch) + 1;
  }
  return 0;
}

}  // namespace

// keras_callbacks_test.cpp compares when it ends fit() with Keras.

TEST(EarlyStopping, LogsWhyFitEndsUnlessItIsToBeQuiet) {
  for (const bool verbose : {true, false}) {
    EarlyStopping stopping({.verbose = verbose});
    PlayedContext context;
    const LoggedLines logged;

    for (const double value : {1.0, 2.0}) {
      stopping.on_epoch_end(context, {{"val_loss", value}});
      ++context.epoch_number;
    }

    EXPECT_EQ(logged.text().find("so fit() ends") != std::string::npos, verbose) << logged.text();
  }
}

TEST(EarlyStopping, StopsWhenPatienceIsSpent) {
  EarlyStopping patient({.patience = 2});
  EXPECT_EQ(epochs_until_stop(patient, {5, 4, 4, 4.5, 4, 3}), 4);

  EarlyStopping impatient;
  EXPECT_EQ(epochs_until_stop(impatient, {5, 4, 3, 3}), 4);
}

TEST(EarlyStopping, CountsOnlyImprovementsAboveTheMinimum) {
  EarlyStopping stopping({.min_delta = 0.5, .patience = 2});

  EXPECT_EQ(epochs_until_stop(stopping, {5, 4.8, 4.6}), 3);
}

TEST(EarlyStopping, WatchesForTheHighestWhenAsked) {
  EarlyStopping stopping({.best = Best::highest});

  EXPECT_EQ(epochs_until_stop(stopping, {0.1, 0.2, 0.15}), 3);
}

// An accuracy was minimised unless the program said otherwise.
TEST(EarlyStopping, WatchesForTheHighestOfAnAccuracyByItself) {
  EarlyStopping stopping({.monitor = "val_accuracy", .patience = 2});
  PlayedContext context;

  for (const double accuracy : {0.1, 0.2, 0.3, 0.4}) {
    stopping.on_epoch_end(context, {{"val_accuracy", accuracy}});
    ++context.epoch_number;
  }

  EXPECT_FALSE(context.stopped);
}

TEST(EarlyStopping, AsksForADirectionOfWhatNothingIsKnownOf) {
  EarlyStopping stopping({.monitor = "mood"});
  PlayedContext context;

  EXPECT_EQ(stopping.compares(), std::vector<std::string>{"mood"});
  EXPECT_NE(sentence_thrown_by([&] {
              stopping.on_epoch_end(context, {{"mood", 1}});
            }).find("say .best = Best::lowest"),
            std::string::npos);
  EXPECT_TRUE(EarlyStopping({.monitor = "mood", .best = Best::lowest}).compares().empty());
}

TEST(EarlyStopping, NeverTakesNanForAnImprovement) {
  EarlyStopping stopping({.patience = 2});

  EXPECT_EQ(epochs_until_stop(stopping, {1, std::nan(""), std::nan("")}), 3);
}

TEST(EarlyStopping, NeverTakesNanForTheBestOfTheFirstEpochs) {
  EarlyStopping stopping({.patience = 2});

  EXPECT_EQ(epochs_until_stop(stopping, {std::nan(""), 5, 4, 3, 2}), 0);
}

TEST(EarlyStopping, KeepsItsStateAcrossARestart) {
  EarlyStopping before({.patience = 3});
  EXPECT_EQ(epochs_until_stop(before, {3, 4}), 0);

  EarlyStopping after({.patience = 3});
  after.restore(before.state());

  EXPECT_EQ(epochs_until_stop(after, {5, 6}), 2);
}

TEST(EarlyStopping, NamesTheLogsThatItMayWatch) {
  EarlyStopping stopping({.monitor = "accuracy"});
  PlayedContext context;

  try {
    stopping.on_epoch_end(context, {{"loss", 1}, {"val_loss", 2}});
    FAIL() << "nothing was wrong";
  } catch (const Error& failure) {
    EXPECT_NE(std::string(failure.what()).find("loss, val_loss"), std::string::npos) << failure.what();
  }
}

}  // namespace holdfast
