#include "holdfast/train/reduce_lr_on_plateau.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "holdfast/base/error.h"
#include "support/played_context.h"
#include "support/thrown.h"
#include "unit/callbacks/support/logged_lines.h"

namespace holdfast {
namespace {

using testing::HasSubstr;

// keras_callbacks_test.cpp compares what it decides with Keras.

TEST(ReduceLROnPlateau, NeverTakesNanForTheBestOfTheFirstEpochs) {
  ReduceLROnPlateau reducing({.factor = 0.5, .patience = 2});
  PlayedContext context;
  context.rate = 1;

  for (const double value : {std::numeric_limits<double>::quiet_NaN(), 5.0, 4.0, 3.0}) {
    reducing.on_epoch_end(context, {{"val_loss", value}});
  }

  EXPECT_EQ(context.rate, 1.0F);
}

TEST(ReduceLROnPlateau, BeginsAnewWithEachFit) {
  ReduceLROnPlateau reducing({.factor = 0.5, .patience = 1});
  PlayedContext context;
  context.rate = 1;
  reducing.on_epoch_end(context, {{"val_loss", 1}});

  reducing.on_fit_begin(context);
  reducing.on_epoch_end(context, {{"val_loss", 2}});

  EXPECT_EQ(context.rate, 1.0F);
}

TEST(ReduceLROnPlateau, LogsAFallUnlessItIsToBeQuiet) {
  for (const bool verbose : {true, false}) {
    ReduceLROnPlateau reducing({.factor = 0.5, .patience = 1, .verbose = verbose});
    PlayedContext context;
    context.rate = 1;
    const LoggedLines logged;

    for (const double value : {1.0, 2.0}) reducing.on_epoch_end(context, {{"val_loss", value}});

    EXPECT_EQ(context.rate, 0.5F);
    EXPECT_EQ(logged.text().find("the learning rate falls to 0.5") != std::string::npos, verbose) << logged.text();
  }
}

TEST(ReduceLROnPlateau, NamesTheLogsThatItMayWatch) {
  ReduceLROnPlateau reducing({.monitor = "accuracy"});
  PlayedContext context;

  const std::string sentence = sentence_thrown_by([&] {
    reducing.on_epoch_end(context, {{"loss", 1}, {"val_loss", 2}});
  });

  EXPECT_THAT(sentence, HasSubstr("loss, val_loss"));
}

TEST(ReduceLROnPlateau, RefusesOptionsOutOfTheirRange) {
  using Options = ReduceLROnPlateauOptions;
  for (const Options& options : {Options{.factor = 1}, Options{.factor = -0.1}, Options{.patience = 0},
                                 Options{.min_delta = -1}, Options{.cooldown = -1}, Options{.min_learning_rate = -1},
                                 Options{.factor = std::numeric_limits<double>::quiet_NaN()}}) {
    EXPECT_EQ(code_thrown_by([&] { ReduceLROnPlateau refused(options); }), ErrorCode::invalid_argument);
  }
}

}  // namespace
}  // namespace holdfast
