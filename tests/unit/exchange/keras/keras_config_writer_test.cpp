// Savepoint graphs as Keras configurations, without Keras: names, options and the sizes of images.

#include "keras/keras_config_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/exchange/support/keras_trees.h"

namespace holdfast::format {
namespace {

using testing::error_of;
using ::testing::HasSubstr;
using Image = std::array<std::uint64_t, 3>;

// Parses the JSON again, as from a file: there, a number that is not negative is unsigned.
Json savepoint_metadata(std::vector<Json> layers, Json input = {9, 8, 2}) {
  const Json graph = {
      {"format", "holdfast.sequential"}, {"version", 1}, {"input_shape", input}, {"layers", std::move(layers)}};
  return Json::parse(Json{{"kind", "savepoint"}, {"graph", graph}}.dump());
}

Json entry(const std::string& kind, const std::string& name, Json config = Json::object()) {
  return {{"kind", kind}, {"name", name}, {"config", std::move(config)}};
}

Json convolution(const std::string& padding) {
  return {{"filters", 5}, {"kernel_size", {3, 2}}, {"strides", {2, 3}}, {"padding", padding}};
}

TEST(KerasConfigWriter, FollowsTheSizesOfImages) {
  const Json pool = {{"pool_size", {2, 2}}, {"strides", {1, 2}}, {"padding", "valid"}};
  const Json metadata =
      savepoint_metadata({entry("Conv2D", "c", convolution("same")), entry("MaxPooling2D", "p", pool),
                          entry("Dense", "d", {{"units", 7}}), entry("Flatten", "f"), entry("Dense", "e")});

  EXPECT_EQ(image_before(metadata, "c"), (Image{9, 8, 2}));
  EXPECT_EQ(image_before(metadata, "p"), (Image{5, 3, 5}));
  EXPECT_EQ(image_before(metadata, "d"), (Image{4, 1, 5}));
  EXPECT_EQ(image_before(metadata, "f"), (Image{4, 1, 7}));
  EXPECT_EQ(image_before(metadata, "e"), (Image{}));
  EXPECT_EQ(image_before(metadata, "nobody"), (Image{}));
}

TEST(KerasConfigWriter, FindsNoImageWhereSizesAreInvalid) {
  Json zero = convolution("valid");
  zero["strides"] = {0, 1};
  Json negative = convolution("same");
  negative["strides"] = {-1, 1};

  EXPECT_EQ(image_before(savepoint_metadata({entry("Conv2D", "c", zero), entry("Flatten", "f")}), "f")[0], 0U);
  EXPECT_EQ(image_before(savepoint_metadata({entry("Conv2D", "c", negative), entry("Flatten", "f")}), "f")[0], 0U);
  EXPECT_EQ(image_before(savepoint_metadata({entry("Conv2D", "c"), entry("Flatten", "f")}), "f"), (Image{}));
}

TEST(KerasConfigWriter, GivesTheInputLayerAnUnusedName) {
  const Json config =
      keras_config_of_savepoint(savepoint_metadata({entry("Dense", "input_layer"), entry("Dense", "input_layer_")}));

  EXPECT_EQ(config["config"]["layers"][0]["config"]["name"], "input_layer__");
  EXPECT_EQ(config["config"]["layers"][0]["config"]["batch_shape"], Json({nullptr, 9, 8, 2}));
}

TEST(KerasConfigWriter, ConvertsANormalInitializer) {
  const Json metadata = savepoint_metadata({entry("Dense", "d", {{"kernel_initializer", "normal(0.25)"}})});

  const Json config = keras_config_of_savepoint(metadata)["config"]["layers"][1]["config"];

  EXPECT_EQ(config["kernel_initializer"]["class_name"], "RandomNormal");
  EXPECT_EQ(config["kernel_initializer"]["config"]["stddev"], 0.25);
}

Json metadata_with_optimizer(Json optimizer) {
  Json metadata = savepoint_metadata({entry("Dense", "d")});
  metadata["configuration"] = {{"optimizer", std::move(optimizer)}, {"loss", {{"kind", "mean_squared_error"}}}};
  return metadata;
}

TEST(KerasConfigWriter, ConvertsASchedule) {
  const Json schedule = {{"kind", "cosine_decay"}, {"initial_learning_rate", 0.1}, {"decay_steps", 10}};

  const Json config = keras_config_of_savepoint(
      metadata_with_optimizer({{"kind", "adam"}, {"learning_rate", schedule}}))["compile_config"];

  EXPECT_EQ(config["optimizer"]["class_name"], "Adam");
  const Json expected = {{"module", "keras.optimizers.schedules"},
                         {"class_name", "CosineDecay"},
                         {"config", {{"initial_learning_rate", 0.1}, {"decay_steps", 10}}},
                         {"registered_name", nullptr}};
  EXPECT_EQ(config["optimizer"]["config"]["learning_rate"], expected);
}

TEST(KerasConfigWriter, NamesClippingAsKerasDoes) {
  for (const auto& [ours, theirs] :
       {std::pair{"clip_value", "clipvalue"}, {"clip_norm", "clipnorm"}, {"global_clip_norm", "global_clipnorm"}}) {
    const Json config = keras_config_of_savepoint(metadata_with_optimizer(
        {{"kind", "sgd"}, {"learning_rate", 0.1}, {ours, 2.5}}))["compile_config"]["optimizer"]["config"];

    EXPECT_EQ(config, Json({{"learning_rate", 0.1}, {theirs, 2.5}}));
  }
}

TEST(KerasConfigWriter, WritesNoDecayAsKerasDoes) {
  const auto decay_of = [](const char* kind, double decay) -> Json {
    return keras_config_of_savepoint(
        metadata_with_optimizer({{"kind", kind},
                                 {"learning_rate", 0.1},
                                 {"weight_decay", decay}}))["compile_config"]["optimizer"]["config"]["weight_decay"];
  };

  EXPECT_EQ(decay_of("lion", 0.0), nullptr);
  EXPECT_EQ(decay_of("lion", 0.25), 0.25);
  // Keras's AdamW refuses None.
  EXPECT_EQ(decay_of("adamw", 0.0), 0.0);
}

TEST(KerasConfigWriter, NamesEachOptimizerAsKerasDoes) {
  for (const auto& [kind, class_name] : {std::pair{"sgd", "SGD"},
                                         {"adam", "Adam"},
                                         {"adamw", "AdamW"},
                                         {"rmsprop", "RMSprop"},
                                         {"adagrad", "Adagrad"},
                                         {"adadelta", "Adadelta"},
                                         {"adamax", "Adamax"},
                                         {"nadam", "Nadam"},
                                         {"lion", "Lion"},
                                         {"ftrl", "Ftrl"},
                                         {"schedule_free_adamw", "ScheduleFreeAdamW"}}) {
    const Json optimizer = keras_config_of_savepoint(
        metadata_with_optimizer({{"kind", kind}, {"learning_rate", 0.1}}))["compile_config"]["optimizer"];

    EXPECT_EQ(optimizer["class_name"], class_name);
    EXPECT_EQ(optimizer["module"], "keras.optimizers");
    EXPECT_EQ(optimizer["config"], Json({{"learning_rate", 0.1}}));
  }
}

TEST(KerasConfigWriter, WritesThePatternsOfMuonAsExpressions) {
  const auto optimizer_with = [](const Json& patterns) {
    const Json config = keras_config_of_savepoint(
        metadata_with_optimizer({{"kind", "muon"}, {"learning_rate", 0.1}, {"adam_arrays", patterns}}));
    return config.contains("compile_config") ? config["compile_config"]["optimizer"] : Json();
  };

  const Json optimizer = optimizer_with(Json::array({"out", "encoder/dense"}));

  EXPECT_EQ(optimizer["class_name"], "Muon");
  EXPECT_EQ(optimizer["config"]["exclude_layers"], Json({"(^|/)out(/|$)", "(^|/)encoder[./]dense(/|$)"}));
  EXPECT_FALSE(optimizer["config"].contains("adam_arrays"));
  // Which arrays * stands for depends on names that Keras has otherwise.
  EXPECT_TRUE(optimizer_with(Json::array({"out*"})).is_null());
}

TEST(KerasConfigWriter, LeavesOutAnOptimizerWithAUsersOwnSchedule) {
  const Json metadata = metadata_with_optimizer({{"kind", "adam"}, {"learning_rate", {{"kind", "of_our_own"}}}});

  EXPECT_FALSE(keras_config_of_savepoint(metadata).contains("compile_config"));
}

TEST(KerasConfigWriter, ConvertsLossesAndMetricsOfValues) {
  Json metadata = savepoint_metadata({entry("Dense", "d")});
  const Json precision = {{"kind", "precision"}, {"thresholds", 0.5}, {"name", "p"}};
  metadata["configuration"] = {{"optimizer", {{"kind", "sgd"}, {"learning_rate", 0.1}}},
                               {"loss", {{"kind", "huber"}, {"delta", 2}}},
                               {"metrics", Json::array({{{"kind", "cosine_similarity"}, {"axis", 1}, {"name", "c"}},
                                                        {{"metric", precision}, {"sums", 2}},
                                                        {{"kind", "perplexity"}, {"from_logits", true}}})}};

  const Json config = keras_config_of_savepoint(metadata)["compile_config"];

  EXPECT_EQ(config["loss"]["class_name"], "Huber");
  EXPECT_EQ(config["loss"]["config"], Json({{"delta", 2}}));
  ASSERT_EQ(config["metrics"].size(), 2U) << "Keras has no perplexity";
  EXPECT_EQ(config["metrics"][0]["config"], Json({{"axis", 2}, {"name", "c"}})) << "the samples are axis 0";
  EXPECT_EQ(config["metrics"][1]["class_name"], "Precision");
  EXPECT_EQ(config["metrics"][1]["config"], Json({{"thresholds", 0.5}, {"name", "p"}}));
}

Json loss_for_keras(const Json& loss) {
  Json metadata = savepoint_metadata({entry("Dense", "d")});
  metadata["configuration"] = {{"optimizer", {{"kind", "sgd"}, {"learning_rate", 0.1}}},
                               {"loss", loss},
                               {"metrics", Json::array({{{"kind", "auc"}, {"num_thresholds", 20}}})}};
  const Json config = keras_config_of_savepoint(metadata);
  return config.contains("compile_config") ? config["compile_config"] : Json();
}

TEST(KerasConfigWriter, CountsTheSamplesInListsOfAxes) {
  const Json config = loss_for_keras({{"kind", "dice"}, {"axis", Json::array({0, -1})}});

  EXPECT_EQ(config["loss"]["class_name"], "Dice");
  EXPECT_EQ(config["loss"]["config"]["axis"], Json::array({1, -1}));
  EXPECT_EQ(config["metrics"][0]["class_name"], "AUC");
}

// In Keras, they would be those of the batch.
TEST(KerasConfigWriter, LeavesOutALossOverAllAxesOfASample) {
  EXPECT_TRUE(loss_for_keras({{"kind", "tversky"}, {"axis", Json::array()}}).is_null());
}

TEST(KerasConfigWriter, LeavesOutSizesThatKerasSeesInArrays) {
  const Json config = loss_for_keras({{"kind", "ctc"}, {"classes", 5}, {"most_labels", 3}});

  EXPECT_EQ(config["loss"]["class_name"], "CTC");
  EXPECT_EQ(config["loss"]["config"], Json::object());
}

TEST(KerasConfigWriter, LeavesOutTrainingThatKerasDoesNotKnow) {
  Json metadata = savepoint_metadata({entry("Dense", "d")});
  metadata["configuration"] = {{"optimizer", {{"kind", "adam"}}}, {"loss", {{"kind", "of_our_own"}}}};

  EXPECT_FALSE(keras_config_of_savepoint(metadata).contains("compile_config"));
}

TEST(KerasConfigWriter, ConvertsTheLossesOfSeveralOutputs) {
  Json metadata = savepoint_metadata({entry("Dense", "d")});
  const Json huber = {{"loss", {{"kind", "huber"}, {"delta", 2}}}, {"weight", 0.5}};
  const Json hinge = {{"loss", {{"kind", "hinge"}}}, {"weight", 1}};
  const Json accuracy = {{"metric", {{"kind", "accuracy"}}}, {"ignores_weights", true}};
  metadata["configuration"] = {{"optimizer", {{"kind", "sgd"}, {"learning_rate", 0.1}}},
                               {"losses", std::vector<Json>{huber, hinge}},
                               {"metrics", std::vector<Json>{{{"output", 1}, {"metric", accuracy}}}}};

  const Json config = keras_config_of_savepoint(metadata)["compile_config"];

  ASSERT_EQ(config["loss"].size(), 2U);
  EXPECT_EQ(config["loss"][0]["class_name"], "Huber");
  EXPECT_EQ(config["loss"][1]["class_name"], "Hinge");
  EXPECT_EQ(config["loss_weights"], Json::array({0.5, 1}));
  ASSERT_EQ(config["metrics"].size(), 2U) << "a list for each output";
  EXPECT_TRUE(config["metrics"][0].empty());
  EXPECT_EQ(config["metrics"][1][0]["class_name"], "Accuracy");
  EXPECT_EQ(training_that_keras_lacks(metadata), "");
}

TEST(KerasConfigWriter, NamesTheTrainingThatKerasLacks) {
  Json metadata = savepoint_metadata({entry("Dense", "d")});
  metadata["configuration"] = {{"optimizer", {{"kind", "sgd"}}}, {"loss", {{"kind", "of_our_own"}}}};
  EXPECT_EQ(training_that_keras_lacks(metadata), "the loss \"of_our_own\" as it is");

  metadata["configuration"]["optimizer"]["kind"] = "mine";
  EXPECT_EQ(training_that_keras_lacks(metadata), "the optimizer \"mine\" as it is");
}

TEST(KerasConfigWriter, RefusesWhatCannotBecomeAKerasModel) {
  Json other_format = savepoint_metadata({});
  other_format["graph"]["format"] = "mine";

  EXPECT_THAT(error_of([&] { keras_config_of_savepoint(other_format); }), HasSubstr("unsupported: "));
  EXPECT_THAT(error_of([&] { keras_config_of_savepoint(savepoint_metadata({entry("Mine", "m")})); }),
              HasSubstr("layer \"m\" is of kind \"Mine\""));
  EXPECT_THAT(error_of([&] { keras_config_of_savepoint(savepoint_metadata({entry("Dense", "")})); }),
              HasSubstr("the layer name \"\""));
  EXPECT_THAT(error_of([&] { keras_config_of_savepoint(savepoint_metadata({Json(3)})); }), HasSubstr("unsupported: "));
  EXPECT_THAT(error_of([&] { keras_config_of_savepoint(savepoint_metadata({}, "wide")); }),
              HasSubstr("no input shape"));
}

}  // namespace
}  // namespace holdfast::format
