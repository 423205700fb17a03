#include "holdfast/train/early_stopping.h"

#include <gtest/gtest.h>

#include "support/played_context.h"
#include "unit/callbacks/support/logged_lines.h"

namespace holdfast {

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

}  // namespace holdfast
