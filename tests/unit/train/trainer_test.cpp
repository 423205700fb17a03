#include "holdfast/train/trainer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "holdfast/base/error.h"
#include "holdfast/format/catalogue.h"
#include "holdfast/holdfast.h"
#include "support/gate.h"
#include "support/program.h"
#include "support/thread_replica.h"
#include "train/resume.h"

namespace holdfast {
namespace {

// Everything whose bits could depend on the number of replicas: dropout, batch statistics, a last batch that is short.
Sequential small_model() {
  return Sequential{Input{6, 6, 1},
                    Conv2D{3, 3, {.activation = Activation::relu}},
                    BatchNormalization{},
                    MaxPooling2D{2},
                    Flatten{},
                    Dropout{0.25F},
                    Dense{8, {.activation = Activation::gelu}},
                    Dense{3}};
}

Dataset small_data(std::int64_t samples = 53) {
  Tensor features(Shape{samples, 6, 6, 1});
  Tensor targets(Shape{samples});
  for (std::int64_t i = 0; i < samples; ++i) {
    Random random(9, Purpose::user, 0, static_cast<std::uint64_t>(i));
    const auto label = static_cast<float>(random.below(3));
    targets.values()[static_cast<std::size_t>(i)] = label;
    for (float& value : features.sample(i)) value = random.normal() + label;
  }
  return from_tensors(std::move(features), std::move(targets));
}

struct Outcome {
  std::string digest;
  std::int64_t step = 0;
  Logs results;
  Logs evaluation;
  std::vector<Logs> history;
};

Outcome train_small(Replica& replica, std::vector<CallbackHandle> callbacks = {}, std::int64_t epochs = 2) {
  Trainer trainer(replica, small_model(), Adam(0.01F), SparseCategoricalCrossentropy({.from_logits = true}),
                  {SparseCategoricalAccuracy({.name = "accuracy"})});
  const FitResult fit =
      trainer.fit(small_data().shuffle().batch(10).prefetch(1),
                  {.epochs = epochs, .validation = small_data(20).batch(7), .callbacks = std::move(callbacks)});
  return {trainer.weights_digest().hex(), trainer.step(), fit.results, trainer.evaluate(small_data(31).batch(8)),
          fit.history};
}

std::vector<Outcome> outcomes_of(const ThreadRun& run, const std::function<Outcome(Replica&)>& train) {
  std::vector<Outcome> outcomes(static_cast<std::size_t>(run.replicas));
  train_on_threads(run, [&](Replica& replica) { outcomes[static_cast<std::size_t>(replica.rank())] = train(replica); });
  return outcomes;
}

// Each rank has callbacks of its own, as processes do.
using MakeCallbacks = std::function<std::vector<CallbackHandle>()>;

std::vector<CallbackHandle> no_callbacks() {
  return {};
}
std::vector<CallbackHandle> checkpoint() {
  return {ModelCheckpoint()};
}
std::vector<CallbackHandle> checkpoint_every_two() {
  return {ModelCheckpoint({.every_steps = 2})};
}

Outcome outcome_of(const ThreadRun& run, const MakeCallbacks& callbacks = no_callbacks) {
  return outcomes_of(run, [&](Replica& replica) { return train_small(replica, callbacks()); })[0];
}

void expect_equal(const Outcome& left, const Outcome& right) {
  EXPECT_EQ(left.digest, right.digest);
  EXPECT_EQ(left.step, right.step);
  EXPECT_EQ(left.results, right.results);
  EXPECT_EQ(left.evaluation, right.evaluation);
  EXPECT_EQ(left.history, right.history);
}

// Ends training at a step as a failure would.
class FailAt final : public Callback {
 public:
  // Waits until `may_fail`, for what goes on in the background.
  explicit FailAt(
      std::int64_t step, std::function<bool()> may_fail = [] { return true; })
      : step_(step), may_fail_(std::move(may_fail)) {}
  std::string name() const override { return "fail_at"; }
  void on_step_end(TrainingContext& context, const Logs&) override {
    if (context.step() != step_) return;
    const Deadline deadline = Deadline::after(std::chrono::seconds(60));
    while (!may_fail_() && !deadline.has_passed()) std::this_thread::yield();
    throw std::runtime_error("failed as asked");
  }

 private:
  std::int64_t step_;
  std::function<bool()> may_fail_;
};

// Adds up what it sees; its sum survives only through its declared state.
class SumOfLosses final : public Callback {
 public:
  std::string name() const override { return "sum_of_losses"; }
  CallbackState state() const override { return {{"sum", sum}, {"epochs", epochs}}; }
  void restore(const CallbackState& state) override {
    sum = std::get<double>(state.at("sum"));
    epochs = std::get<std::int64_t>(state.at("epochs"));
  }
  void on_step_end(TrainingContext&, const Logs& logs) override { sum += logs.at("loss"); }
  void on_epoch_end(TrainingContext&, const Logs&) override { ++epochs; }

  double sum = 0;
  std::int64_t epochs = 0;
};

// What the journal says.
class Journal final : public NoSupervision {
 public:
  explicit Journal(bool is_stop_requested = false) : is_stop_requested_(is_stop_requested) {}

  bool is_stop_requested() const override { return is_stop_requested_; }
  void report_event(const std::string& event, const std::string& detail) override {
    const std::lock_guard lock(mutex_);
    details_[event].push_back(detail);
  }

  std::vector<std::string> details(const std::string& event) {
    const std::lock_guard lock(mutex_);
    return details_[event];
  }

 private:
  const bool is_stop_requested_;
  std::mutex mutex_;
  std::map<std::string, std::vector<std::string>> details_;  // guarded by mutex_
};

// Somebody asks for a savepoint while a step is computed.
class AskedAt final : public NoSupervision {
 public:
  explicit AskedAt(std::int64_t step) : step_(step) {}

  void enter(TrainingPhase phase, std::int64_t step) override {
    if (phase == TrainingPhase::computing && step == step_) is_asked_ = true;
  }
  bool is_savepoint_requested() const override { return is_asked_ && !is_begun_; }
  int begin_requested_savepoint() override {
    is_begun_ = true;
    return 7;
  }
  void report_savepoint(int number, const std::string& path, std::int64_t step) override {
    reports_.push_back({number, path, step});
  }
  void report_no_savepoint(int number, const std::string& why) override { reports_.push_back({number, why, -1}); }
  void count_samples(std::int64_t samples) override { samples_ += samples; }

  struct Report {
    int number = 0;
    std::string text{};  // the path, or why there is none
    std::int64_t step = -1;
  };
  // Once training is over.
  const std::vector<Report>& reports() const { return reports_; }
  std::int64_t samples() const { return samples_; }

 private:
  const std::int64_t step_;
  std::atomic<bool> is_asked_ = false;
  std::atomic<bool> is_begun_ = false;
  std::atomic<std::int64_t> samples_ = 0;
  std::vector<Report> reports_;  // rank 0's writer thread, or its training thread while that has nothing to do
};

// What is told of savepoints, and on which thread.
class Listener final : public Callback {
 public:
  std::string name() const override { return "listener"; }
  void on_savepoint(const SavepointEvent& event) override {
    events.push_back(event);
    threads.insert(std::this_thread::get_id());
  }

  std::vector<std::int64_t> steps(SavepointEvent::Kind kind) const {
    std::vector<std::int64_t> steps;
    for (const SavepointEvent& event : events) {
      if (event.kind == kind) steps.push_back(event.step);
    }
    return steps;
  }

  std::vector<SavepointEvent> events;
  std::set<std::thread::id> threads;
};

// Opens a gate at the end of a step.
class OpenAt final : public Callback {
 public:
  OpenAt(std::int64_t step, Gate& gate) : step_(step), gate_(gate) {}
  std::string name() const override { return "open_at"; }
  void on_step_end(TrainingContext& context, const Logs&) override {
    if (context.step() == step_) gate_.open();
  }

 private:
  std::int64_t step_;
  Gate& gate_;
};

// Calls `before` ahead of these operations on savepoints.
std::unique_ptr<FileSystem> when_saving(const std::string& operation, const std::function<void()>& before) {
  return watched_file_system(posix_file_system(), [operation, before](const FileOperation& done) {
    if (done.name == operation && done.path.find("savepoint-") != std::string::npos) before();
  });
}

std::vector<std::string> savepoint_files(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : format::list_savepoints(posix_file_system(), folder)) names.push_back(entry.name);
  return names;
}

}  // namespace

TEST(Trainer, GivesTheSameBitsOnAnyNumberOfReplicas) {
  const Outcome expected = outcome_of({.replicas = 1});
  for (int replicas = 2; replicas <= 4; ++replicas) {
    for (const Outcome& outcome : outcomes_of({.replicas = replicas}, [](Replica& r) { return train_small(r); })) {
      SCOPED_TRACE(std::to_string(replicas) + " replicas");
      expect_equal(outcome, expected);
    }
  }
}

TEST(Trainer, GivesTheSameBitsWithAnyNumberOfWorkers) {
  const Outcome expected = outcome_of({.replicas = 1});

  expect_equal(outcome_of({.replicas = 1, .workers = 3}), expected);
  expect_equal(outcome_of({.replicas = 2, .workers = 2}), expected);
}

TEST(Trainer, GivesTheSameBitsHoweverShardsAreDealt) {
  const Outcome expected = outcome_of({.replicas = 1, .shards = 7});

  for (const std::vector<int>& dealt : {std::vector<int>{4, 3}, {1, 6}, {5, 1, 1}, {1, 4, 2}}) {
    const ThreadRun run{.replicas = static_cast<int>(dealt.size()), .shards = 7, .dealt = dealt, .workers = 2};
    for (const Outcome& outcome : outcomes_of(run, [](Replica& r) { return train_small(r); })) {
      expect_equal(outcome, expected);
    }
  }
}

TEST(Trainer, DependsOnTheSeed) {
  EXPECT_NE(outcome_of({.seed = 3}).digest, outcome_of({.seed = 4}).digest);
}

TEST(Trainer, GoesOnFromTheNewestSavepointWithTheSameBits) {
  const Outcome expected = outcome_of({.replicas = 2});
  // Before any savepoint, behind one of an epoch's middle, at an epoch's end, in the second epoch.
  for (const std::int64_t step : {1, 4, 6, 9}) {
    for (const int replicas : {1, 3}) {
      SCOPED_TRACE("failure at step " + std::to_string(step) + ", going on with " + std::to_string(replicas));
      const TemporaryFolder folder;
      const MakeCallbacks failing = [&]() -> std::vector<CallbackHandle> {
        return {ModelCheckpoint({.every_steps = 2}), FailAt(step)};
      };
      EXPECT_THROW(outcome_of({.replicas = 2, .run_directory = folder.path()}, failing), std::runtime_error);

      expect_equal(outcome_of({.replicas = replicas, .run_directory = folder.path()}, checkpoint_every_two), expected);
    }
  }
}

TEST(Trainer, BringsBackTheDeclaredStateOfCallbacks) {
  const auto undisturbed = std::make_shared<SumOfLosses>();
  outcome_of({}, [&]() -> std::vector<CallbackHandle> { return {undisturbed}; });
  const TemporaryFolder folder;
  const MakeCallbacks failing = [&]() -> std::vector<CallbackHandle> {
    return {ModelCheckpoint({.every_steps = 3}), SumOfLosses(), FailAt(8)};
  };
  EXPECT_THROW(outcome_of({.run_directory = folder.path()}, failing), std::runtime_error);

  const auto recovered = std::make_shared<SumOfLosses>();
  outcome_of({.run_directory = folder.path()}, [&]() -> std::vector<CallbackHandle> {
    return {ModelCheckpoint({.every_steps = 3}), recovered};
  });

  EXPECT_EQ(recovered->sum, undisturbed->sum);
  EXPECT_EQ(recovered->epochs, undisturbed->epochs);
}

TEST(Trainer, ReturnsTheRecordedResultsOfAFinishedRun) {
  const TemporaryFolder folder;
  const Outcome first = outcome_of({.run_directory = folder.path()}, checkpoint);
  const std::vector<std::string> files = savepoint_files(folder.path());

  const Outcome second = outcome_of({.run_directory = folder.path()}, []() -> std::vector<CallbackHandle> {
    return {ModelCheckpoint(), FailAt(1)};
  });

  expect_equal(second, first);
  EXPECT_EQ(savepoint_files(folder.path()), files);
}

TEST(Trainer, PassesFinishedCallsAndJoinsTheRunningOne) {
  const auto two_fits = [](Replica& replica, std::vector<CallbackHandle> callbacks) {
    Trainer trainer(replica, small_model(), SGD(0.01F), SparseCategoricalCrossentropy({.from_logits = true}));
    const FitResult first = trainer.fit(small_data().batch(10), {.epochs = 1, .callbacks = {ModelCheckpoint()}});
    const Logs between = trainer.evaluate(small_data(30).batch(10));
    const FitResult second =
        trainer.fit(small_data().shuffle().batch(20), {.epochs = 2, .callbacks = std::move(callbacks)});
    return Outcome{trainer.weights_digest().hex(), trainer.step(), first.results, between, second.history};
  };
  const TemporaryFolder undisturbed;
  const Outcome expected = outcomes_of({.run_directory = undisturbed.path()},
                                       [&](Replica& r) { return two_fits(r, {ModelCheckpoint()}); })[0];
  const TemporaryFolder folder;
  EXPECT_THROW(outcomes_of({.run_directory = folder.path()},
                           [&](Replica& r) {
                             return two_fits(r, {ModelCheckpoint({.every_steps = 1}), FailAt(8)});
                           }),
               std::runtime_error);

  const Outcome outcome =
      outcomes_of({.run_directory = folder.path()}, [&](Replica& r) { return two_fits(r, {ModelCheckpoint()}); })[0];

  expect_equal(outcome, expected);
}

TEST(Trainer, SavesALoadedStateAsTheSameFile) {
  const TemporaryFolder folder;
  outcome_of({.replicas = 2, .run_directory = folder.path()}, checkpoint);
  const std::string path = folder / savepoint_files(folder.path()).back();
  const std::string original = read_file(path);

  for (int round = 0; round < 100; ++round) {
    const Snapshot snapshot = read_savepoint(posix_file_system(), path);
    std::filesystem::remove(path);
    write_savepoint(posix_file_system(), path, snapshot);
    ASSERT_EQ(read_file(path) == original, true) << "round " << round;
  }
}

TEST(Trainer, WritesTheSameFileOnAnyNumberOfReplicas) {
  std::vector<std::string> files;
  for (int replicas = 1; replicas <= 3; ++replicas) {
    const TemporaryFolder folder;
    outcome_of({.replicas = replicas, .run_directory = folder.path()}, checkpoint);
    files.push_back(read_file(folder / savepoint_files(folder.path()).back()));
  }

  EXPECT_EQ(files[1] == files[0], true);
  EXPECT_EQ(files[2] == files[0], true);
}

TEST(Trainer, LoadsTheBaseModelAndItsOutputs) {
  const TemporaryFolder folder;
  Tensor expected;
  train_on_threads({.replicas = 2, .run_directory = folder.path()}, [&](Replica& replica) {
    Trainer trainer(replica, small_model(), Adam(0.01F), SparseCategoricalCrossentropy({.from_logits = true}));
    trainer.fit(small_data().batch(10), {.callbacks = {ModelCheckpoint()}});
    if (replica.is_primary()) expected = trainer.predict(Tensor(Shape{2, 6, 6, 1}, std::vector<float>(72, 0.5F)));
  });

  const Sequential model = load_model(folder / savepoint_files(folder.path()).back());
  const Tensor outputs = model.predict(Tensor(Shape{2, 6, 6, 1}, std::vector<float>(72, 0.5F)));

  ASSERT_EQ(outputs.shape(), expected.shape());
  EXPECT_TRUE(std::equal(outputs.values().begin(), outputs.values().end(), expected.values().begin()));
}

TEST(Trainer, HandsTheTrainedWeightsToTheModel) {
  const Sequential model = small_model();
  Replica replica = Replica::alone();
  Trainer trainer(replica, model, SGD(0.1F), SparseCategoricalCrossentropy({.from_logits = true}));

  trainer.fit(small_data().batch(10));

  EXPECT_EQ(model.parameters().digest(model.parameter_values()), trainer.weights_digest());
}

TEST(Trainer, StartsFromTheWeightsOfAGivenModel) {
  const TemporaryFolder folder;
  outcome_of({.run_directory = folder.path()}, checkpoint);
  const Sequential model = load_model(folder / savepoint_files(folder.path()).back());

  Replica replica = Replica::alone({.seed = 77});
  Trainer trainer(replica, model, Adam(0.01F), SparseCategoricalCrossentropy({.from_logits = true}));

  EXPECT_EQ(trainer.weights_digest(), model.parameters().digest(model.parameter_values()));
}

TEST(Trainer, TakesTheSavepointBeforeADamagedOneAndSetsThatAside) {
  const Outcome expected = outcome_of({});
  const TemporaryFolder folder;
  const MakeCallbacks failing = [&]() -> std::vector<CallbackHandle> {
    return {ModelCheckpoint({.every_steps = 2}), FailAt(9)};
  };
  EXPECT_THROW(outcome_of({.run_directory = folder.path()}, failing), std::runtime_error);
  const std::string newest = folder / savepoint_files(folder.path()).back();
  std::filesystem::resize_file(newest, std::filesystem::file_size(newest) / 2);

  expect_equal(outcome_of({.run_directory = folder.path()}, checkpoint_every_two), expected);

  EXPECT_TRUE(std::filesystem::exists(newest + ".damaged"));
}

TEST(Trainer, GoesOnFromACopyWhenTheRunDirectoryIsLost) {
  const Outcome expected = outcome_of({});
  const TemporaryFolder folder;
  const TemporaryFolder copy;
  const auto events = std::make_shared<Journal>();
  const ThreadRun run{
      .replicas = 2, .run_directory = folder.path(), .savepoint_copies = {copy.path()}, .supervision = events};
  const MakeCallbacks failing = [&]() -> std::vector<CallbackHandle> {
    return {ModelCheckpoint({.every_steps = 2}), FailAt(9)};
  };
  EXPECT_THROW(outcome_of(run, failing), std::runtime_error);
  const std::vector<std::string> copies = savepoint_files(copy.path());
  ASSERT_FALSE(copies.empty());
  for (const std::string& name : folder.names()) std::filesystem::remove(folder / name);

  expect_equal(outcome_of(run, checkpoint_every_two), expected);

  const std::vector<std::string> resumed = events->details("resumed");
  ASSERT_EQ(resumed.size(), 1U);
  EXPECT_NE(resumed[0].find(copy / copies.back()), std::string::npos) << resumed[0];
  EXPECT_EQ(savepoint_files(copy.path()), savepoint_files(folder.path()));
}

TEST(Trainer, TellsThePrimarysCallbacksOfSavepointsOnTheirOwnThread) {
  const TemporaryFolder folder;
  std::vector<std::shared_ptr<Listener>> listeners = {std::make_shared<Listener>(), std::make_shared<Listener>()};
  std::vector<std::thread::id> threads(2);
  train_on_threads({.replicas = 2, .run_directory = folder.path()}, [&](Replica& replica) {
    const auto rank = static_cast<std::size_t>(replica.rank());
    threads[rank] = std::this_thread::get_id();
    train_small(replica, {ModelCheckpoint({.every_steps = 4}), listeners[rank]});
  });

  EXPECT_EQ(listeners[0]->steps(SavepointEvent::Kind::durable), (std::vector<std::int64_t>{4, 6, 8, 12}));
  EXPECT_EQ(listeners[0]->steps(SavepointEvent::Kind::started), (std::vector<std::int64_t>{4, 6, 8, 12}));
  EXPECT_EQ(listeners[0]->threads, std::set<std::thread::id>{threads[0]});
  EXPECT_TRUE(listeners[1]->events.empty());
}

// A storage that writes nothing until the last step, and one that is never waited for.
TEST(Trainer, SkipsSavepointsWithoutAnEffectOnWhatItComputes) {
  struct Skipping {
    Outcome outcome;
    std::string last_savepoint;
    std::vector<std::int64_t> skipped;
    std::size_t journalled;
  };
  const auto train = [](int replicas, bool is_slow) -> Skipping {
    const TemporaryFolder folder;
    Gate gate;
    if (!is_slow) gate.open();
    const auto files = when_saving("sync", [&] { gate.pass(); });
    const auto journal = std::make_shared<Journal>();
    const auto listener = std::make_shared<Listener>();
    const ThreadRun run{
        .replicas = replicas, .run_directory = folder.path(), .supervision = journal, .file_system = files.get()};
    const Outcome outcome = outcomes_of(run, [&](Replica& replica) {
      return train_small(replica, {ModelCheckpoint({.every_steps = 1, .when_storage_is_slow = WhenStorageIsSlow::skip}),
                                   OpenAt(12, gate), replica.is_primary() ? listener : std::make_shared<Listener>()});
    })[0];
    return {outcome, read_file(folder / savepoint_files(folder.path()).back()),
            listener->steps(SavepointEvent::Kind::skipped), journal->details("savepoint_skipped").size()};
  };
  const Skipping expected = train(1, false);

  for (const int replicas : {1, 3}) {
    const Skipping slow = train(replicas, true);
    expect_equal(slow.outcome, expected.outcome);
    EXPECT_EQ(slow.last_savepoint == expected.last_savepoint, true);
    EXPECT_EQ(slow.skipped, (std::vector<std::int64_t>{3, 4, 5, 6, 7, 8, 9, 10, 11}));
    EXPECT_EQ(slow.journalled, 9U);
  }
}

TEST(Trainer, TrainsOnWhenASavepointFails) {
  const TemporaryFolder folder;
  const Outcome expected = outcome_of({});
  const auto has_failed = std::make_shared<std::atomic<bool>>(false);
  const auto files = when_saving("write", [has_failed] {
    if (!has_failed->exchange(true)) throw Error(ErrorCode::disk_full, "the disk is full");
  });
  const auto listener = std::make_shared<Listener>();

  const Outcome outcome =
      outcome_of({.run_directory = folder.path(), .file_system = files.get()}, [&]() -> std::vector<CallbackHandle> {
        return {ModelCheckpoint({.every_steps = 1}), listener};
      });

  expect_equal(outcome, expected);
  EXPECT_EQ(listener->steps(SavepointEvent::Kind::failed).size(), 1U);
  EXPECT_FALSE(listener->steps(SavepointEvent::Kind::durable).empty());
}

TEST(Trainer, EndsWithTheErrorOfTheLastSavepointAndTellsOfItBefore) {
  const TemporaryFolder folder;
  const auto files = when_saving("write", [] { throw Error(ErrorCode::disk_full, "the disk is full"); });
  const auto listener = std::make_shared<Listener>();
  const auto journal = std::make_shared<Journal>();

  try {
    outcome_of({.run_directory = folder.path(), .supervision = journal, .file_system = files.get()},
               [&]() -> std::vector<CallbackHandle> {
                 return {ModelCheckpoint({.every_steps = 1}), listener};
               });
    FAIL() << "no savepoint could be written";
  } catch (const Error& failure) {
    EXPECT_EQ(failure.code(), ErrorCode::disk_full);
  }

  ASSERT_FALSE(listener->steps(SavepointEvent::Kind::failed).empty());
  EXPECT_EQ(listener->steps(SavepointEvent::Kind::failed)[0], 1);
  EXPECT_TRUE(listener->steps(SavepointEvent::Kind::durable).empty());
  EXPECT_FALSE(journal->details("savepoint_failed").empty());
}

// In an epoch's middle, at its end, and with the last step.
TEST(Trainer, SavesOnRequestAndEndsAsItWouldHave) {
  const Outcome expected = outcome_of({});
  for (const std::int64_t step : {3, 5, 11}) {
    for (const int replicas : {1, 3}) {
      SCOPED_TRACE("asked in step " + std::to_string(step) + " of " + std::to_string(replicas) + " replicas");
      const TemporaryFolder folder;
      const auto asked = std::make_shared<AskedAt>(step);

      expect_equal(outcome_of({.replicas = replicas, .run_directory = folder.path(), .supervision = asked}), expected);

      ASSERT_EQ(asked->reports().size(), 1U);
      EXPECT_EQ(asked->reports()[0].number, 7);
      EXPECT_EQ(asked->reports()[0].step, step + 1);
      ASSERT_EQ(savepoint_files(folder.path()).size(), 1U);
      EXPECT_EQ(asked->reports()[0].text, folder / savepoint_files(folder.path())[0]);
    }
  }
}

TEST(Trainer, GoesOnFromARequestedSavepointWithTheSameBits) {
  const Outcome expected = outcome_of({});
  for (const std::int64_t step : {3, 5}) {
    const TemporaryFolder folder;
    const auto is_saved = [&] { return !savepoint_files(folder.path()).empty(); };
    const MakeCallbacks failing = [&]() -> std::vector<CallbackHandle> { return {FailAt(9, is_saved)}; };
    const ThreadRun run{.replicas = 2, .run_directory = folder.path(), .supervision = std::make_shared<AskedAt>(step)};
    EXPECT_THROW(outcome_of(run, failing), std::runtime_error);
    ASSERT_EQ(savepoint_files(folder.path()).size(), 1U);

    expect_equal(outcome_of({.run_directory = folder.path()}), expected);
  }
}

TEST(Trainer, GoesOnWhereARequestedSavepointCannotBeWritten) {
  const TemporaryFolder folder;
  const auto files = when_saving("write", [] { throw Error(ErrorCode::disk_full, "the disk is full"); });
  const auto asked = std::make_shared<AskedAt>(3);

  expect_equal(outcome_of({.run_directory = folder.path(), .supervision = asked, .file_system = files.get()}),
               outcome_of({}));

  ASSERT_EQ(asked->reports().size(), 1U);
  EXPECT_NE(asked->reports()[0].text.find("the disk is full"), std::string::npos) << asked->reports()[0].text;
  EXPECT_EQ(asked->reports()[0].step, -1);
}

TEST(Trainer, RefusesARequestedSavepointWhereTheStorageIsSlow) {
  const TemporaryFolder folder;
  Gate gate;
  const auto files = when_saving("sync", [&] { gate.pass(); });
  const auto asked = std::make_shared<AskedAt>(4);
  const MakeCallbacks callbacks = [&]() -> std::vector<CallbackHandle> {
    return {ModelCheckpoint({.every_steps = 1, .when_storage_is_slow = WhenStorageIsSlow::skip}), OpenAt(12, gate)};
  };

  outcome_of({.run_directory = folder.path(), .supervision = asked, .file_system = files.get()}, callbacks);

  ASSERT_EQ(asked->reports().size(), 1U);
  EXPECT_NE(asked->reports()[0].text.find("two savepoints are under way"), std::string::npos);
}

TEST(Trainer, CountsTheSamplesThatItsReplicasTrainedOn) {
  const auto counts = std::make_shared<AskedAt>(-1);

  outcome_of({.replicas = 2, .supervision = counts});

  EXPECT_EQ(counts->samples(), 2 * 53);
}

TEST(Trainer, TellsOfTheSavepointThatAStopLeaves) {
  const TemporaryFolder folder;
  const auto listener = std::make_shared<Listener>();

  EXPECT_THROW(outcome_of({.run_directory = folder.path(), .supervision = std::make_shared<Journal>(true)},
                          [&]() -> std::vector<CallbackHandle> { return {listener}; }),
               StopRequested);

  EXPECT_EQ(listener->steps(SavepointEvent::Kind::durable), std::vector<std::int64_t>{1});
}

TEST(Trainer, WritesDownWhatBecameOfEachSavepoint) {
  const TemporaryFolder folder;
  const auto journal = std::make_shared<Journal>();

  outcome_of({.run_directory = folder.path(), .supervision = journal}, [&]() -> std::vector<CallbackHandle> {
    return {ModelCheckpoint({.compression = SavepointCompression::automatic})};
  });

  EXPECT_EQ(journal->details("savepoint_started").size(), 2U);
  const std::vector<std::string> durable = journal->details("savepoint");
  ASSERT_EQ(durable.size(), 2U);
  for (const char* key : {"path", "step", "digest", "total_bytes", "file_bytes", "ratio", "seconds"}) {
    EXPECT_NE(durable[0].find("\"" + std::string(key) + "\""), std::string::npos) << key;
  }
  ASSERT_EQ(journal->details("savepoint_compression_chosen").size(), 1U);
  EXPECT_NE(journal->details("savepoint_compression_chosen")[0].find("too small"), std::string::npos);
}

TEST(Trainer, GoesOnFromSavepointsOfAnyCompression) {
  const Outcome expected = outcome_of({});
  const TemporaryFolder folder;
  std::int64_t step = 3;
  for (const auto compression :
       {SavepointCompression::none, SavepointCompression::zstd, SavepointCompression::automatic}) {
    const MakeCallbacks failing = [&]() -> std::vector<CallbackHandle> {
      return {ModelCheckpoint({.every_steps = 2, .compression = compression}), FailAt(step)};
    };
    EXPECT_THROW(outcome_of({.run_directory = folder.path()}, failing), std::runtime_error);
    step += 3;
  }

  expect_equal(outcome_of({.run_directory = folder.path()}, checkpoint_every_two), expected);
}

TEST(Trainer, RefusesASecondTrainerInOneRun) {
  Replica replica = Replica::alone();
  Trainer first(replica, small_model(), SGD(0.1F), SparseCategoricalCrossentropy({.from_logits = true}));

  EXPECT_THROW(Trainer(replica, small_model(), SGD(0.1F), SparseCategoricalCrossentropy({.from_logits = true})), Error);
}

TEST(Trainer, SaysWhatIsWrongWithADataSet) {
  Replica replica = Replica::alone();
  Trainer trainer(replica, small_model(), SGD(0.1F), SparseCategoricalCrossentropy({.from_logits = true}));

  EXPECT_THROW(trainer.fit(small_data()), Error);
  EXPECT_THROW(trainer.fit(small_data(5).batch(10, {.drop_remainder = true})), Error);
  EXPECT_THROW(trainer.fit(from_tensors(Tensor(Shape{4, 7}), Tensor(Shape{4})).batch(2)), Error);
  EXPECT_THROW(trainer.fit(from_tensors(Tensor(Shape{4, 6, 6, 1}), Tensor(Shape{4, 2})).batch(2)), Error);
  EXPECT_THROW(trainer.fit(small_data().batch(10), {.epochs = 0}), Error);
  EXPECT_THROW(trainer.predict(Tensor(Shape{2, 5})), Error);
}

TEST(Trainer, RefusesCallbacksOfOneName) {
  Replica replica = Replica::alone();
  Trainer trainer(replica, small_model(), SGD(0.1F), SparseCategoricalCrossentropy({.from_logits = true}));

  EXPECT_THROW(trainer.fit(small_data().batch(10), {.callbacks = {SumOfLosses(), SumOfLosses()}}), Error);
}

TEST(Trainer, WorksOnMoreShardsThanABatchHasSamples) {
  const auto train = [](Replica& replica) {
    Trainer trainer(replica, small_model(), SGD(0.01F), SparseCategoricalCrossentropy({.from_logits = true}));
    trainer.fit(small_data(11).batch(4));
    return Outcome{trainer.weights_digest().hex(), trainer.step(), {}, {}, {}};
  };

  const Outcome alone = outcomes_of({.replicas = 1, .shards = 7}, train)[0];
  const Outcome mirrored = outcomes_of({.replicas = 5, .shards = 7}, train)[4];

  EXPECT_EQ(mirrored.digest, alone.digest);
  EXPECT_EQ(alone.step, 3);
}

}  // namespace holdfast
