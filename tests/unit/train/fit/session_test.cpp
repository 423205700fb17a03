// A run that gets more epochs must end as one that had them from the start.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>

#include "support/program.h"
#include "support/temporary_folder.h"
#include "support/thread_replica.h"
#include "support/thrown.h"
#include "unit/train/support/played_callbacks.h"
#include "unit/train/support/small_training.h"

namespace holdfast {
namespace {

using testing::HasSubstr;

class StopAfter final : public Callback {
 public:
  explicit StopAfter(std::int64_t epochs) : epochs_(epochs) {}
  std::string name() const override { return "stop_after"; }
  void on_epoch_end(TrainingContext& context, const Logs&) override {
    if (context.epoch() + 1 == epochs_) context.stop_training();
  }

 private:
  std::int64_t epochs_;
};

std::string refusal_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& failure) {
    EXPECT_EQ(failure.code(), ErrorCode::incompatible);
    return failure.what();
  }
  ADD_FAILURE() << "nothing was refused";
  return "";
}

Outcome train_for(std::int64_t epochs, const TemporaryFolder& folder, const ModelCheckpointOptions& options = {},
                  int replicas = 2) {
  return outcomes_of({.replicas = replicas, .run_directory = folder.path()}, [&](Replica& replica) {
    return train_small(replica, {ModelCheckpoint(options), CSVLogger()}, epochs);
  })[0];
}

// The run's last savepoint, which has the whole state.
std::string last_savepoint(const TemporaryFolder& folder) {
  return read_file(folder / savepoint_files(folder.path()).back());
}

Outcome stop_early(const TemporaryFolder& folder, std::int64_t epochs, std::int64_t stop_after) {
  return outcomes_of({.run_directory = folder.path()}, [&](Replica& replica) {
    return train_small(replica, {ModelCheckpoint(), StopAfter(stop_after)}, epochs);
  })[0];
}

struct TwoFits {
  std::int64_t first = 1;
  std::int64_t second = 2;
  ModelCheckpointOptions options{};
};

Outcome train_twice(const TemporaryFolder& folder, const TwoFits& fits, std::int64_t fail_at = 0) {
  return outcomes_of({.replicas = 2, .run_directory = folder.path()}, [&](Replica& replica) {
    Trainer trainer(replica, small_model(), SGD(0.01F), SparseCategoricalCrossentropy({.from_logits = true}));
    const FitResult first =
        trainer.fit(small_data().batch(10), {.epochs = fits.first, .callbacks = {ModelCheckpoint(fits.options)}});
    const Logs between = trainer.evaluate(small_data(30).batch(10));
    const FitResult second =
        trainer.fit(small_data().shuffle().batch(20),
                    {.epochs = fits.second, .callbacks = {ModelCheckpoint(fits.options), FailAt(fail_at)}});
    return Outcome{trainer.weights_digest().hex(), trainer.step(), first.results, between, second.history};
  })[0];
}

}  // namespace

TEST(MoreEpochs, EndWithTheBitsFilesAndRecordsOfARunThatHadThemFromTheStart) {
  const std::vector<ModelCheckpointOptions> ways = {
      {},
      {.every_epochs = 2},
      {.every_epochs = 2, .keep_last = 0},
      {.every_steps = 4, .every_epochs = 0, .keep_last = 0},
      {.every_epochs = 0, .keep_last = 2, .best_by = "loss", .keep_best = 2},
  };
  for (std::size_t way = 0; way < ways.size(); ++way) {
    for (const int replicas : {1, 3}) {
      SCOPED_TRACE("way " + std::to_string(way) + ", going on with " + std::to_string(replicas));
      const TemporaryFolder undisturbed;
      const Outcome expected = train_for(5, undisturbed, ways[way]);
      const TemporaryFolder folder;
      train_for(3, folder, ways[way]);

      const Outcome outcome = train_for(5, folder, ways[way], replicas);

      expect_equal(outcome, expected);
      EXPECT_EQ(savepoint_files(folder.path()), savepoint_files(undisturbed.path()));
      EXPECT_TRUE(last_savepoint(folder) == last_savepoint(undisturbed));
      EXPECT_EQ(read_file(folder / "log.csv"), read_file(undisturbed / "log.csv"));
    }
  }
}

TEST(MoreEpochs, LeaveOneFinalSavepointIfNoCallbackAskedForAny) {
  const auto train = [](const TemporaryFolder& folder, std::int64_t epochs) {
    return outcomes_of({.replicas = 2, .run_directory = folder.path()},
                       [&](Replica& replica) { return train_small(replica, {}, epochs); })[0];
  };
  const TemporaryFolder undisturbed;
  const Outcome expected = train(undisturbed, 4);
  const TemporaryFolder folder;
  train(folder, 2);

  expect_equal(train(folder, 4), expected);

  EXPECT_EQ(savepoint_files(folder.path()), savepoint_files(undisturbed.path()));
  EXPECT_TRUE(last_savepoint(folder) == last_savepoint(undisturbed));
}

TEST(MoreEpochs, GoOnFromTheMiddleOfAnEpochToo) {
  const TemporaryFolder undisturbed;
  const Outcome expected = train_for(4, undisturbed);
  const TemporaryFolder folder;
  EXPECT_THROW(outcomes_of({.run_directory = folder.path()},
                           [&](Replica& replica) {
                             return train_small(replica, {ModelCheckpoint({.every_steps = 2}), FailAt(9)}, 2);
                           }),
               std::runtime_error);

  expect_equal(train_for(4, folder), expected);
}

TEST(MoreEpochs, DoNotResumeAFitThatACallbackEnded) {
  // Within the epochs, and with the last of them.
  for (const std::int64_t stop_after : {2, 3}) {
    SCOPED_TRACE("stopped after epoch " + std::to_string(stop_after));
    const TemporaryFolder folder;
    const Outcome first = stop_early(folder, 3, stop_after);

    const Outcome second = stop_early(folder, 6, stop_after);

    expect_equal(second, first);
  }
}

TEST(MoreEpochs, GoOnFromTheEndOfAnEarlierFit) {
  const TemporaryFolder undisturbed;
  const TwoFits longer{.first = 2, .second = 2, .options = {.keep_last = 0}};
  const Outcome expected = train_twice(undisturbed, longer);
  for (const std::int64_t fail_at : {0, 8}) {
    SCOPED_TRACE(fail_at == 0 ? "both had ended" : "the later one had failed");
    const TemporaryFolder folder;
    const TwoFits shorter{.first = 1, .second = 2, .options = {.keep_last = 0}};
    if (fail_at == 0) {
      train_twice(folder, shorter);
    } else {
      EXPECT_THROW(train_twice(folder, shorter, fail_at), std::runtime_error);
    }

    const Outcome outcome = train_twice(folder, longer);

    expect_equal(outcome, expected);
    EXPECT_TRUE(last_savepoint(folder) == last_savepoint(undisturbed));
    expect_equal(train_twice(folder, longer), expected);
  }
}

TEST(MoreEpochs, AreRefusedIfTheEndOfAnEarlierFitIsNotKept) {
  const TemporaryFolder folder;
  const Outcome expected = train_twice(folder, {.first = 1, .second = 2, .options = {.keep_last = 1}});

  const std::string sentence =
      refusal_of([&] { train_twice(folder, {.first = 2, .second = 2, .options = {.keep_last = 1}}); });

  EXPECT_THAT(sentence, HasSubstr("more epochs"));
  EXPECT_THAT(sentence, HasSubstr("HOLDFAST_START=fresh"));
  expect_equal(train_twice(folder, {.first = 1, .second = 2, .options = {.keep_last = 1}}), expected);
}

TEST(MoreEpochs, FewerAreRefused) {
  const TemporaryFolder folder;
  train_for(3, folder);

  const std::string sentence = refusal_of([&] { train_for(2, folder); });

  EXPECT_THAT(sentence, HasSubstr("epochs was 3 and is 2"));
  EXPECT_THAT(sentence, HasSubstr("HOLDFAST_START=fresh"));
}

// A stop is thrown as what is not a std::exception, and was taken for a failure of the call.
TEST(Session, TakesAStopThatTheProgramCaughtForNoFailure) {
  class AsksForAStop final : public NoSupervision {
   public:
    StepRequests requests() const override { return {.stop = true}; }
  };
  const auto code_after_a_stop = [](const std::function<void(Trainer&)>& stopped) {
    const TemporaryFolder folder;
    ErrorCode code{};
    const ThreadRun run{.run_directory = folder.path(), .supervision = std::make_shared<AsksForAStop>()};
    train_on_threads(run, [&](Replica& replica) {
      Trainer trainer(replica, small_model(), SGD(0.01F), SparseCategoricalCrossentropy({.from_logits = true}));
      EXPECT_THROW(stopped(trainer), StopRequested);
      code = code_thrown_by([&] { trainer.evaluate(small_data().batch(10)); });
    });
    return code;
  };

  EXPECT_EQ(code_after_a_stop([](Trainer& trainer) { trainer.evaluate(small_data().batch(10)); }),
            ErrorCode::cancelled);
  EXPECT_EQ(code_after_a_stop([](Trainer& trainer) { trainer.fit(small_data().batch(10)); }), ErrorCode::cancelled);
}

// Only exceptions of the standard library were noted, so the program was told that the run went back.
TEST(Session, NotesACallThatEndsByWhatIsNoStandardException) {
  class ThrowsANumber final : public Callback {
   public:
    std::string name() const override { return "throws_a_number"; }
    void on_test_begin(const TrainingContext&) override { throw 7; }
  };
  const TemporaryFolder folder;
  train_on_threads({.run_directory = folder.path()}, [](Replica& replica) {
    Trainer trainer(replica, small_model(), SGD(0.01F), SparseCategoricalCrossentropy({.from_logits = true}));
    EXPECT_THROW(trainer.evaluate(small_data().batch(10), {.callbacks = {ThrowsANumber()}}), int);

    EXPECT_THAT(sentence_thrown_by([&] { trainer.evaluate(small_data().batch(10)); }),
                HasSubstr("call 1 ended with an error that the program caught: something was thrown that is not a "
                          "std::exception."));
  });
}

}  // namespace holdfast
