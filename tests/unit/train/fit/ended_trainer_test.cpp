#include "train/fit/ended_trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <stdexcept>

#include "support/temporary_folder.h"
#include "support/thread_replica.h"
#include "unit/train/support/played_callbacks.h"
#include "unit/train/support/played_supervision.h"
#include "unit/train/support/small_training.h"

namespace holdfast {
namespace {

using testing::HasSubstr;

// What a training of two models does besides.
struct TwoTrainers {
  std::vector<CallbackHandle> of_first{};
  std::vector<CallbackHandle> of_second{};
  std::int64_t epochs_of_first = 1;
  bool evaluates_first_again = false;
};

struct TwoOutcomes {
  Outcome first;
  Outcome second;
};

const SparseCategoricalCrossentropy& loss_of_both() {
  static const SparseCategoricalCrossentropy loss({.from_logits = true});
  return loss;
}

TwoOutcomes train_two(Replica& replica, const TwoTrainers& asked) {
  TwoOutcomes outcomes;
  {
    Trainer trainer(replica, small_model(), Adam(0.01F), loss_of_both());
    const FitResult fit =
        trainer.fit(small_data().shuffle().batch(10), {.epochs = asked.epochs_of_first, .callbacks = asked.of_first});
    const Logs evaluation = trainer.evaluate(small_data(31).batch(8));
    if (asked.evaluates_first_again) trainer.evaluate(small_data(31).batch(8));
    outcomes.first = {trainer.weights_digest().hex(), trainer.step(), fit.results, evaluation, fit.history};
  }
  Trainer trainer(replica, Sequential{Input{6, 6, 1}, Flatten{}, Dense{40}, Dense{3}}, SGD(0.01F), loss_of_both());
  const FitResult fit = trainer.fit(small_data(40).shuffle().batch(10), {.epochs = 3, .callbacks = asked.of_second});
  outcomes.second = {trainer.weights_digest().hex(), trainer.step(), fit.results,
                     trainer.evaluate(small_data(31).batch(8)), fit.history};
  return outcomes;
}

// On rank 0. Each rank makes callbacks of its own.
TwoOutcomes train_two_on(
    const ThreadRun& run, const std::function<TwoTrainers()>& asked = [] { return TwoTrainers(); }) {
  TwoOutcomes outcomes;
  train_on_threads(run, [&](Replica& replica) {
    const TwoOutcomes mine = train_two(replica, asked());
    if (replica.rank() == 0) outcomes = mine;
  });
  return outcomes;
}

TwoTrainers failing_in_the_second(std::int64_t step) {
  return {.of_second = {ModelCheckpoint({.every_steps = 2}), FailAt(step)}};
}

std::string sentence_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace

TEST(EndedTrainer, IsFollowedByAnotherOneInTheSameRun) {
  const TwoOutcomes expected = train_two_on({});
  for (const int replicas : {1, 2, 3}) {
    const TemporaryFolder folder;

    const TwoOutcomes outcomes = train_two_on({.replicas = replicas, .run_directory = folder.path()});

    expect_equal(outcomes.first, expected.first);
    expect_equal(outcomes.second, expected.second);
    EXPECT_TRUE(std::filesystem::exists(folder / "trainer1.json"));
    EXPECT_EQ(savepoint_files(folder.path()).size(), 1U);
    EXPECT_EQ(savepoint_files(folder / "trainer2").size(), 1U);
  }
}

TEST(EndedTrainer, IsPassedWithItsRecordsByARunThatStartsAgain) {
  const TwoOutcomes expected = train_two_on({});
  // Before any savepoint of the second, after one, and after an epoch.
  for (const std::int64_t step : {1, 3, 6}) {
    for (const int replicas : {1, 3}) {
      SCOPED_TRACE("failure at step " + std::to_string(step) + ", going on with " + std::to_string(replicas));
      const TemporaryFolder folder;
      const ThreadRun two = {.replicas = 2, .run_directory = folder.path()};
      EXPECT_THROW(train_two_on(two, [&] { return failing_in_the_second(step); }), std::runtime_error);

      // A first Trainer that computed a step would end the test.
      const TwoOutcomes outcomes = train_two_on({.replicas = replicas, .run_directory = folder.path()},
                                                [] { return TwoTrainers{.of_first = {FailAt(1)}}; });

      expect_equal(outcomes.first, expected.first);
      expect_equal(outcomes.second, expected.second);
    }
  }
}

TEST(EndedTrainer, LeavesRequestedSavepointsOfTheNextOneToItsFolder) {
  const TemporaryFolder folder;
  // The first Trainer makes six steps.
  const auto asked = std::make_shared<AskedAt>(7);

  train_two_on({.run_directory = folder.path(), .supervision = asked});

  ASSERT_EQ(asked->reports().size(), 1U);
  EXPECT_EQ(asked->reports()[0].text, folder / "trainer2/savepoint-0000000008.h5");
}

TEST(EndedTrainer, LoadsAndCompilesAgainWhatNoSavepointHolds) {
  const TemporaryFolder folder;
  const std::string path = folder / "weights.h5";
  {
    Replica alone = Replica::alone({.seed = 77});
    Trainer(alone, small_model(), Adam(), loss_of_both()).save(path);
  }
  const ThreadRun run = {.run_directory = folder / "run"};
  for (const char* name : {"run", "other"}) std::filesystem::create_directory(folder / name);
  const auto train = [&](std::int64_t fail_at) {
    std::vector<std::string> digests;
    train_on_threads(run, [&](Replica& replica) {
      // A model that was trained is another start than one whose weights are drawn.
      const Model model = small_model();
      {
        Trainer trainer(replica, model, Adam(), loss_of_both());
        trainer.fit(small_data().batch(10));
        digests.push_back(trainer.weights_digest().hex());
        trainer.load_weights(path);
        trainer.compile(model.frozen("conv2d"), SGD(0.1F));
        digests.push_back(trainer.weights_digest().hex());
      }
      Trainer second(replica, small_model(), SGD(0.1F), loss_of_both());
      second.fit(small_data().batch(10), {.callbacks = {FailAt(fail_at)}});
    });
    return digests;
  };
  std::vector<std::string> digests;
  EXPECT_THROW(train(2), std::runtime_error);

  digests = train(100);

  ASSERT_EQ(digests.size(), 2U);
  EXPECT_NE(digests[0], digests[1]);
  train_on_threads({.run_directory = folder / "other"}, [&](Replica& replica) {
    const Model model = small_model();
    Trainer trainer(replica, model, Adam(), loss_of_both());
    trainer.load_weights(path);
    trainer.compile(model.frozen("conv2d"), SGD(0.1F));
    EXPECT_EQ(trainer.weights_digest().hex(), digests[1]);
  });
}

TEST(EndedTrainer, GetsNoMoreCallsAndEpochs) {
  const TemporaryFolder folder;
  const ThreadRun run = {.run_directory = folder.path()};
  train_two_on(run);

  EXPECT_THAT(sentence_of([&] { train_two_on(run, [] { return TwoTrainers{.epochs_of_first = 2}; }); }),
              HasSubstr("cannot get more epochs"));
  EXPECT_THAT(sentence_of([&] { train_two_on(run, [] { return TwoTrainers{.evaluates_first_again = true}; }); }),
              HasSubstr("now makes a call 3 (evaluate) of Trainer 1"));
}

TEST(EndedTrainer, MayNotHaveLeftACallOpen) {
  const TemporaryFolder folder;
  const std::string sentence = sentence_of([&] {
    train_on_threads({.run_directory = folder.path()}, [&](Replica& replica) {
      try {
        Trainer trainer(replica, small_model(), SGD(0.1F), loss_of_both());
        trainer.fit(small_data().batch(10), {.callbacks = {FailAt(2)}});
      } catch (const std::runtime_error&) {
      }
      Trainer(replica, small_model(), SGD(0.1F), loss_of_both()).evaluate(small_data().batch(10));
    });
  });

  EXPECT_THAT(sentence, HasSubstr("its call 1, fit(), has not ended"));
}

TEST(EndedTrainer, IsRefusedWithoutTheSavepointThatItEndedWith) {
  const TemporaryFolder folder;
  const ThreadRun run = {.run_directory = folder.path()};
  train_two_on(run);
  for (const std::string& name : savepoint_files(folder.path())) std::filesystem::remove(folder / name);

  EXPECT_THAT(sentence_of([&] { train_two_on(run); }), HasSubstr("is not in " + folder.path() + " any more"));
}

TEST(EndedTrainer, IsFoundInTheFoldersOfCopies) {
  const TemporaryFolder folder;
  const TemporaryFolder copies;
  const ThreadRun run = {.run_directory = folder.path(), .savepoint_copies = {copies.path()}};
  const TwoOutcomes expected = train_two_on(run);
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) std::filesystem::remove_all(entry);

  const TwoOutcomes outcomes =
      train_two_on(run, [] { return TwoTrainers{.of_first = {FailAt(1)}, .of_second = {FailAt(1)}}; });

  expect_equal(outcomes.first, expected.first);
  expect_equal(outcomes.second, expected.second);
}

TEST(EndedTrainer, HasAFolderForItsSavepointsAsTheNextOneHas) {
  const TemporaryFolder folder;
  train_on_threads({.run_directory = folder.path()}, [&](Replica& replica) {
    EXPECT_EQ(Trainer(replica, small_model(), SGD(0.1F), loss_of_both()).directory(), folder.path());
    EXPECT_EQ(Trainer(replica, small_model(), SGD(0.1F), loss_of_both()).directory(), folder / "trainer2");
  });
}

// Asks for the folder alone: a callback that writes would write to the root of the file system.
TEST(EndedTrainer, IsFollowedWithoutARunDirectoryByOneThatHasNoFolderEither) {
  Replica alone = Replica::alone();
  std::vector<std::string> folders;
  const auto notes_its_folder = [&] {
    return LambdaCallback(
        {.on_fit_begin = [&](TrainingContext& context) { folders.push_back(context.run_directory()); }});
  };

  for (int trainer = 0; trainer < 2; ++trainer) {
    Trainer trainer_of_two(alone, small_model(), SGD(0.1F), loss_of_both());
    trainer_of_two.fit(small_data().batch(10), {.epochs = 1, .callbacks = {notes_its_folder()}});
    EXPECT_EQ(trainer_of_two.directory(), "");
  }

  EXPECT_EQ(folders, (std::vector<std::string>{"", ""}));
}

}  // namespace holdfast
