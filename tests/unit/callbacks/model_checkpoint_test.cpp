// Files with names of their own, weights alone, and the threshold of the best.

#include "holdfast/train/model_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <stdexcept>

#include "holdfast/holdfast.h"
#include "support/file_digests.h"
#include "support/temporary_folder.h"
#include "support/thread_replica.h"
#include "support/thrown.h"
#include "unit/callbacks/support/logged_lines.h"
#include "unit/train/support/played_callbacks.h"
#include "unit/train/support/small_training.h"

namespace holdfast {
namespace {

using testing::HasSubstr;

ModelCheckpointOptions named(const TemporaryFolder& folder, bool weights_only = true) {
  return {.directory = folder / "weights", .file_name = "{epoch:02d}-{val_loss:.2f}.h5", .weights_only = weights_only};
}

Outcome train_named(const TemporaryFolder& folder, const ModelCheckpointOptions& options, int replicas = 1,
                    std::int64_t fail_at = 0) {
  std::filesystem::create_directory(folder / "run");
  return outcomes_of({.replicas = replicas, .run_directory = folder / "run"}, [&](Replica& replica) {
    return train_small(replica, {ModelCheckpoint({.every_steps = 4}), ModelCheckpoint(options), FailAt(fail_at)}, 3);
  })[0];
}

std::string refusal_of(const ModelCheckpointOptions& options) {
  return sentence_thrown_by([&] { ModelCheckpoint{options}; });
}

}  // namespace

TEST(ModelCheckpoint, NamesFilesByEpochAndLogs) {
  const TemporaryFolder folder;

  const Outcome outcome = train_named(folder, named(folder));

  std::vector<std::string> expected;
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::array<char, 32> name{};
    std::snprintf(name.data(), name.size(), "%02d-%.2f.h5", epoch + 1,
                  outcome.history[static_cast<std::size_t>(epoch)].at("val_loss"));
    expected.emplace_back(name.data());
  }
  EXPECT_EQ(posix_file_system().list(folder / "weights"), expected);
}

TEST(ModelCheckpoint, LogsEachFileIfItIsAsked) {
  for (const bool verbose : {true, false}) {
    const TemporaryFolder folder;
    std::filesystem::create_directory(folder / "run");
    const LoggedLines logged;
    outcomes_of({.run_directory = folder / "run"}, [&](Replica& replica) {
      return train_small(
          replica,
          {ModelCheckpoint({.directory = folder / "all", .verbose = verbose}),
           ModelCheckpoint({.directory = folder / "named", .file_name = "{epoch}.h5", .verbose = verbose})},
          2);
    });

    const std::vector<std::string> files = posix_file_system().list(folder / "all");
    for (const std::string& path : {folder / "named/1.h5", folder / "named/2.h5", folder / ("all/" + files.back())}) {
      EXPECT_EQ(logged.text().find("ModelCheckpoint: saved " + path) != std::string::npos, verbose) << path;
    }
  }
}

TEST(ModelCheckpoint, WritesTheSameNamedFilesWhereTheRunIsCutOff) {
  const TemporaryFolder undisturbed;
  train_named(undisturbed, named(undisturbed));
  for (const std::int64_t step : {5, 7, 13}) {
    SCOPED_TRACE("failure at step " + std::to_string(step));
    const TemporaryFolder folder;
    EXPECT_THROW(train_named(folder, named(folder), 2, step), std::runtime_error);

    train_named(folder, named(folder), 3);

    EXPECT_EQ(file_digests(folder / "weights"), file_digests(undisturbed / "weights"));
  }
}

TEST(ModelCheckpoint, WritesWeightsThatAModelAndATrainingRead) {
  const TemporaryFolder folder;
  const Outcome outcome = train_named(folder, named(folder));
  const std::string last = folder / "weights/" + posix_file_system().list(folder / "weights").back();

  train_on_threads({}, [&](Replica& replica) {
    Trainer trainer(replica, small_model(), SGD(), SparseCategoricalCrossentropy({.from_logits = true}));
    trainer.load_weights(last);
    EXPECT_EQ(trainer.weights_digest().hex(), outcome.digest);
  });

  EXPECT_EQ(load_model(last).parameter_values().size(), small_model().parameters().float_count());
  // Without the optimizer's slots.
  EXPECT_LT(std::filesystem::file_size(last), std::filesystem::file_size(folder / "run/savepoint-0000000018.h5"));
}

TEST(ModelCheckpoint, WritesOnlyEpochsBetterThanTheThreshold) {
  const TemporaryFolder folder;
  const Outcome reference = outcome_of({}, no_callbacks);
  const double first = reference.history[0].at("val_loss");
  ModelCheckpointOptions options = named(folder);
  options.every_epochs = 0;
  options.best_by = "val_loss";
  options.best = Best::highest;
  options.initial_value_threshold = first + 1e-6;

  train_named(folder, options);

  EXPECT_FALSE(std::filesystem::exists(folder / "weights"));
  options.initial_value_threshold = first - 1e-6;
  const TemporaryFolder again;
  options.directory = again / "weights";
  train_named(again, options);
  EXPECT_EQ(posix_file_system().list(again / "weights").size(), 1U);
}

TEST(ModelCheckpoint, RefusesNamesThatCannotBe) {
  EXPECT_NO_THROW(ModelCheckpoint({.file_name = "{epoch:02d}-{val_loss:.2f}.h5"}));
  EXPECT_NO_THROW(ModelCheckpoint({.file_name = "{epoch:02x}{{}}.h5"}));
  EXPECT_NO_THROW(ModelCheckpoint({.file_name = "{epoch:c>4}-{val_loss:+e}.h5"}));
  EXPECT_THAT(refusal_of({.file_name = "weights"}), HasSubstr("does not end in .h5"));
  EXPECT_THAT(refusal_of({.file_name = "../{epoch}.h5"}), HasSubstr("has a slash"));
  EXPECT_THAT(refusal_of({.file_name = "savepoint-{epoch}.h5"}), HasSubstr("runs go on from files called savepoint-"));
  EXPECT_THAT(refusal_of({.file_name = "savepoint{val_loss}.h5"}),
              HasSubstr("runs go on from files called savepoint-"));
  EXPECT_THAT(refusal_of({.file_name = "{epoch:.2f}.h5"}), HasSubstr("is not a format of numbers"));
  // Epoch 47 made a slash, and epoch 0 the end of the name.
  EXPECT_THAT(refusal_of({.file_name = "weights-{epoch:c}.h5"}),
              HasSubstr("\"{epoch:c}\" makes a letter of a number, and that of 47 is a slash"));
  EXPECT_THAT(refusal_of({.file_name = "{step:>3c}-{epoch}.h5"}), HasSubstr("makes a letter of a number"));
  EXPECT_THAT(refusal_of({.file_name = "{epoch:{step}}.h5"}), HasSubstr("takes its width or precision"));
  EXPECT_THAT(refusal_of({.file_name = "{epoch.h5"}), HasSubstr("is not a format of numbers"));
  EXPECT_THAT(refusal_of({.file_name = "{}.h5"}), HasSubstr("has no name"));
  EXPECT_THAT(refusal_of({.every_steps = 5, .file_name = "{val_loss}.h5"}), HasSubstr("still to come"));
  EXPECT_THAT(refusal_of({.max_bytes = 5, .file_name = "{epoch}.h5"}), HasSubstr("leave keep_every_steps"));
  EXPECT_THAT(refusal_of({.initial_value_threshold = 1}), HasSubstr("set best_by"));
}

TEST(ModelCheckpoint, RefusesANameThatNoEpochLogsAndSavepointsOfWeightsAlone) {
  const TemporaryFolder folder;
  const auto refusal_of_fit = [&](const ModelCheckpointOptions& options) {
    return sentence_thrown_by([&] {
      train_on_threads({.run_directory = folder.path()},
                       [&](Replica& replica) { train_small(replica, {ModelCheckpoint(options)}); });
    });
  };

  EXPECT_THAT(refusal_of_fit({.file_name = "{val_los:.2f}.h5"}), HasSubstr("val_los"));
  EXPECT_THAT(refusal_of_fit({.weights_only = true}), HasSubstr("directory of its own or a file_name"));
}

}  // namespace holdfast
