// EarlyStopping and ReduceLROnPlateau decide as Keras's do. scripts/tests/callback_cases.py writes the cases.

#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "holdfast/train/early_stopping.h"
#include "holdfast/train/reduce_lr_on_plateau.h"
#include "support/folders.h"
#include "support/played_context.h"

namespace holdfast {
namespace {

using Json = nlohmann::json;

Json cases_of_callback(const char* name) {
  std::ifstream file(source_folder() + "/tests/unit/callbacks/reference/keras_callbacks.json");
  const Json all = Json::parse(file);
  return all.at(name);
}

// JSON has no NaN.
Logs logs_of(const Json& value) {
  return {{"val_loss", value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>()}};
}

Best best_of(const Json& options) {
  return options.at("mode") == "min" ? Best::lowest : Best::highest;
}

TEST(KerasCallbacks, EarlyStoppingStopsAfterTheSameEpochsAndRestoresTheSameWeights) {
  const Json cases = cases_of_callback("EarlyStopping");
  ASSERT_GE(cases.size(), 24U);
  for (const Json& one : cases) {
    SCOPED_TRACE(one.dump());
    const Json& options = one.at("options");
    EarlyStoppingOptions ours = {.best = best_of(options),
                                 .min_delta = options.at("min_delta"),
                                 .patience = options.at("patience"),
                                 .start_from_epoch = options.at("start_from_epoch"),
                                 .restore_best_weights = true};
    if (!options.at("baseline").is_null()) ours.baseline = options.at("baseline").get<double>();
    EarlyStopping stopping(ours);
    PlayedContext context;
    for (const Json& value : one.at("values")) {
      stopping.on_epoch_end(context, logs_of(value));
      ++context.epoch_number;
      if (context.stopped) break;
    }
    stopping.on_fit_end(context, {});
    EXPECT_EQ(context.stopped ? context.epoch_number : 0, one.at("epochs_until_stop"));
    EXPECT_EQ(context.restored, one.at("restored_epoch").get<std::int64_t>());
  }
}

TEST(KerasCallbacks, ReduceLROnPlateauSetsTheSameRates) {
  const Json cases = cases_of_callback("ReduceLROnPlateau");
  ASSERT_GE(cases.size(), 24U);
  for (const Json& one : cases) {
    SCOPED_TRACE(one.dump());
    const Json& options = one.at("options");
    const ReduceLROnPlateauOptions ours = {.factor = options.at("factor"),
                                           .patience = options.at("patience"),
                                           .best = best_of(options),
                                           .min_delta = options.at("min_delta"),
                                           .cooldown = options.at("cooldown"),
                                           .min_learning_rate = options.at("min_lr")};
    auto reducing = std::make_unique<ReduceLROnPlateau>(ours);
    PlayedContext context;
    context.rate = 0.1F;
    for (std::size_t epoch = 0; epoch < one.at("values").size(); ++epoch) {
      reducing->on_epoch_end(context, logs_of(one.at("values").at(epoch)));
      EXPECT_EQ(*context.rate, one.at("rates").at(epoch).get<float>()) << "epoch " << epoch;
      // As after a failure in each epoch.
      auto restarted = std::make_unique<ReduceLROnPlateau>(ours);
      restarted->restore(reducing->state());
      reducing = std::move(restarted);
    }
  }
}

}  // namespace
}  // namespace holdfast
