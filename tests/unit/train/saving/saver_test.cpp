// What a training saves, what it does if that fails or the storage is slow, and which events it reports.

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "holdfast/base/error.h"
#include "support/gate.h"
#include "support/program.h"
#include "support/thread_replica.h"
#include "train/state/snapshot.h"
#include "unit/train/support/played_supervision.h"
#include "unit/train/support/small_training.h"

namespace holdfast {
namespace {

// Collects the events of savepoints, and the threads on which they come.
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

// Does something at the end of a step.
class At final : public Callback {
 public:
  At(std::int64_t step, std::function<void()> act) : step_(step), act_(std::move(act)) {}
  std::string name() const override { return "at_" + std::to_string(step_); }
  void on_step_end(TrainingContext& context, const Logs&) override {
    if (context.step() == step_) act_();
  }

 private:
  std::int64_t step_;
  std::function<void()> act_;
};

At open_at(std::int64_t step, Gate& gate) {
  return At(step, [&gate] { gate.open(); });
}

// Opens a gate when a callback learns that a savepoint was begun, which happens after any wait for it.
class OpenWhenToldOfASavepoint final : public Callback {
 public:
  explicit OpenWhenToldOfASavepoint(Gate& gate) : gate_(gate) {}
  std::string name() const override { return "open_when_told"; }
  void on_savepoint(const SavepointEvent&) override { gate_.open(); }

 private:
  Gate& gate_;
};

// Asks to stop, and records the last phase that each replica reports.
class Stopping final : public NoSupervision {
 public:
  StepRequests requests() const override { return {.stop = true}; }
  void enter(TrainingPhase phase, std::int64_t) override {
    const std::lock_guard lock(mutex_);
    last_[std::this_thread::get_id()] = phase;
  }

  std::vector<TrainingPhase> last_phases() {
    const std::lock_guard lock(mutex_);
    std::vector<TrainingPhase> phases;
    for (const auto& [thread, phase] : last_) phases.push_back(phase);
    return phases;
  }

 private:
  std::mutex mutex_;
  std::map<std::thread::id, TrainingPhase> last_;  // guarded by mutex_
};

// Opens a gate when one rank, whose on_fit_end() was called, waits for the others a second time: after the comparison
// of their states only the end of fit() is left to wait for.
class OpenAtTheEndOfFit final : public NoSupervision {
 public:
  explicit OpenAtTheEndOfFit(Gate& gate) : gate_(gate) {}

  void watch(std::thread::id thread) {
    const std::lock_guard lock(mutex_);
    watched_ = thread;
  }
  void enter(TrainingPhase phase, std::int64_t) override {
    const std::lock_guard lock(mutex_);
    if (std::this_thread::get_id() != watched_ || phase != TrainingPhase::waiting_for_peers) return;
    if (++waits_ == 2) gate_.open();
  }

 private:
  Gate& gate_;
  std::mutex mutex_;
  std::thread::id watched_;  // guarded by mutex_
  int waits_ = 0;            // guarded by mutex_
};

// Opens a gate when the replica waits for its savepoints on the way back to an earlier state.
class OpenOnTheWayBack final : public NoSupervision {
 public:
  explicit OpenOnTheWayBack(Gate& gate) : gate_(gate) {}

  void enter(TrainingPhase phase, std::int64_t) override {
    if (phase == TrainingPhase::saving && is_on_the_way_) gate_.open();
  }
  void report_event(const std::string& event, const std::string& detail) override {
    if (event == "rolled_back") is_on_the_way_ = true;
    if (event == "resumed") resumed_ = detail;
  }

  const std::string& resumed() const { return resumed_; }

 private:
  Gate& gate_;
  bool is_on_the_way_ = false;
  std::string resumed_;
};

// Calls `before` before each of these operations on savepoints.
std::unique_ptr<FileSystem> when_saving(const std::string& operation, const std::function<void()>& before) {
  return watched_file_system(posix_file_system(), [operation, before](const FileOperation& done) {
    if (done.name == operation && done.path.find("savepoint-") != std::string::npos) before();
  });
}

}  // namespace

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

TEST(Trainer, SavesByACheckpointThatServedAnEarlierRun) {
  const auto shared = std::make_shared<ModelCheckpoint>(ModelCheckpointOptions{.every_steps = 4, .keep_last = 1});
  for (int run = 0; run < 2; ++run) {
    const TemporaryFolder folder;
    const auto files = when_saving("rename", [] {});
    train_on_threads({.run_directory = folder.path(), .file_system = files.get()},
                     [&](Replica& replica) { train_small(replica, {shared}); });

    EXPECT_EQ(savepoint_files(folder.path()).size(), 1U) << "run " << run;
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

TEST(Trainer, ReportsSavepointsToThePrimarysCallbacksOnTheTrainingThread) {
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

// When only the first rank waited for them, the others could not read the savepoints that fit() had promised.
TEST(Trainer, ReturnsFromFitOnEveryRankWhenItsSavepointsAreDurable) {
  class AtTheEnd final : public Callback {
   public:
    explicit AtTheEnd(std::function<void()> act) : act_(std::move(act)) {}
    std::string name() const override { return "at_the_end"; }
    void on_fit_end(TrainingContext&, const Logs&) override { act_(); }

   private:
    std::function<void()> act_;
  };
  const TemporaryFolder folder;
  const std::string last = folder / "savepoint-0000000012.h5";
  Gate gate;
  const auto files = when_saving("rename", [&] {
    if (savepoint_files(folder.path()).size() == 1) gate.pass();
  });
  const auto supervision = std::make_shared<OpenAtTheEndOfFit>(gate);
  std::vector<int> was_durable(2);

  train_on_threads(
      {.replicas = 2, .run_directory = folder.path(), .supervision = supervision, .file_system = files.get()},
      [&](Replica& replica) {
        Trainer trainer(replica, small_model(), Adam(0.01F), SparseCategoricalCrossentropy({.from_logits = true}));
        const AtTheEnd watch_the_other([&] {
          if (!replica.is_primary()) supervision->watch(std::this_thread::get_id());
        });
        trainer.fit(small_data().shuffle().batch(10), {.epochs = 2, .callbacks = {ModelCheckpoint{}, watch_the_other}});
        was_durable[static_cast<std::size_t>(replica.rank())] = std::filesystem::exists(last) ? 1 : 0;
        if (!replica.is_primary()) gate.open();
      });

  EXPECT_EQ(was_durable, (std::vector<int>{1, 1}));
}

// One storage writes nothing until the last step, and the other never makes training wait.
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
                                   open_at(12, gate), replica.is_primary() ? listener : std::make_shared<Listener>()});
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

TEST(Trainer, EndsWithTheErrorOfTheLastSavepointAfterReportingIt) {
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

// In the middle of an epoch, at its end, and with the last step.
TEST(Trainer, SavesOnRequestWithoutAnEffectOnItsBits) {
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
      // The last savepoint is that of the final state.
      ASSERT_EQ(savepoint_files(folder.path()).size(), step == 11 ? 1U : 2U);
      EXPECT_EQ(asked->reports()[0].text, folder / savepoint_files(folder.path())[0]);
    }
  }
}

TEST(Trainer, GoesOnIfARequestedSavepointCannotBeWritten) {
  const TemporaryFolder folder;
  const auto files = when_saving("write", [] { throw Error(ErrorCode::disk_full, "the disk is full"); });
  const auto asked = std::make_shared<AskedAt>(3);

  expect_equal(outcome_of({.run_directory = folder.path(), .supervision = asked, .file_system = files.get()}),
               outcome_of({}));

  ASSERT_EQ(asked->reports().size(), 1U);
  EXPECT_NE(asked->reports()[0].text.find("the disk is full"), std::string::npos) << asked->reports()[0].text;
  EXPECT_EQ(asked->reports()[0].step, -1);
}

TEST(Trainer, RefusesARequestedSavepointIfTheStorageIsSlow) {
  const TemporaryFolder folder;
  Gate gate;
  const auto files = when_saving("sync", [&] { gate.pass(); });
  const auto asked = std::make_shared<AskedAt>(4);
  const MakeCallbacks callbacks = [&]() -> std::vector<CallbackHandle> {
    return {ModelCheckpoint({.every_steps = 1, .when_storage_is_slow = WhenStorageIsSlow::skip}), open_at(12, gate)};
  };

  outcome_of({.run_directory = folder.path(), .supervision = asked, .file_system = files.get()}, callbacks);

  ASSERT_EQ(asked->reports().size(), 1U);
  EXPECT_NE(asked->reports()[0].text.find("two savepoints are being written"), std::string::npos);
}

// The file that was being written was once taken for the leftover of a dead writer, and removed.
TEST(Trainer, GoesBackToTheSavepointThatIsBeingWritten) {
  const auto train = [](const ThreadRun& run, const std::vector<CallbackHandle>& callbacks,
                        std::atomic<bool>& is_poisoned) {
    std::string weights;
    const auto poison = [&](Sample sample, Random&) {
      if (is_poisoned.exchange(false)) sample.features[0] = std::numeric_limits<float>::quiet_NaN();
    };
    train_on_threads(run, [&](Replica& replica) {
      Trainer trainer(replica, small_model(), Adam(0.01F), SparseCategoricalCrossentropy({.from_logits = true}));
      trainer.fit(small_data().shuffle().map(poison, "poison").batch(10),
                  {.epochs = 2, .callbacks = callbacks, .when_not_finite = WhenNotFinite::roll_back});
      weights = trainer.weights_digest().hex();
    });
    return weights;
  };
  const TemporaryFolder folder;
  Gate gate;
  std::atomic<bool> is_poisoned = false;
  const auto files = when_saving("rename", [&] { gate.pass(); });
  const auto supervision = std::make_shared<OpenOnTheWayBack>(gate);
  const auto poison_step_6 =
      std::make_shared<At>(5, [&, is_first = true]() mutable { is_poisoned = std::exchange(is_first, false); });

  const std::string weights =
      train({.run_directory = folder.path(), .supervision = supervision, .file_system = files.get()},
            {ModelCheckpoint({.every_steps = 4}), poison_step_6, open_at(7, gate)}, is_poisoned);

  EXPECT_NE(supervision->resumed().find("\"step\":4"), std::string::npos) << supervision->resumed();
  EXPECT_EQ(weights, train({}, {}, is_poisoned));
}

TEST(Trainer, ReportsTheSavepointThatAStopLeaves) {
  const TemporaryFolder folder;
  const auto listener = std::make_shared<Listener>();

  EXPECT_THROW(outcome_of({.run_directory = folder.path(), .supervision = std::make_shared<Journal>(true)},
                          [&]() -> std::vector<CallbackHandle> { return {listener}; }),
               StopRequested);

  EXPECT_EQ(listener->steps(SavepointEvent::Kind::durable), std::vector<std::int64_t>{1});
}

// The rank that writes gives up before the others do, so that its sentence can say what it waited for.
TEST(Trainer, GivesUpTheSavepointOfAStopOnAStuckDiskAndLeavesTheOneBefore) {
  const TemporaryFolder folder;
  const auto stop = std::make_shared<Journal>(true);
  EXPECT_THROW(outcome_of({.run_directory = folder.path(), .supervision = stop}), StopRequested);
  ASSERT_EQ(savepoint_files(folder.path()), std::vector<std::string>{"savepoint-0000000001.h5"});
  const std::string before = read_file(folder / "savepoint-0000000001.h5");
  Gate gate;
  const auto stuck = when_saving("write", [&] {
    gate.pass();
    throw Error(ErrorCode::input_output, "the disk is gone");
  });

  try {
    outcome_of({.replicas = 2,
                .run_directory = folder.path(),
                .supervision = stop,
                .file_system = stuck.get(),
                .collective_timeout = std::chrono::seconds(4)},
               [&]() -> std::vector<CallbackHandle> { return {OpenWhenToldOfASavepoint(gate)}; });
    FAIL() << "a savepoint became durable on a stuck disk";
  } catch (const Error& failure) {
    EXPECT_EQ(failure.code(), ErrorCode::deadline_exceeded);
    EXPECT_NE(std::string(failure.what()).find("savepoint-0000000002.h5 was not written in time"), std::string::npos)
        << failure.what();
  }

  EXPECT_EQ(savepoint_files(folder.path()), std::vector<std::string>{"savepoint-0000000001.h5"});
  EXPECT_EQ(read_file(folder / "savepoint-0000000001.h5") == before, true);
  expect_equal(outcome_of({.run_directory = folder.path()}), outcome_of({}));
}

// A replica that took long to free its memory was once taken for hung after the others had gone.
TEST(Trainer, WaitsForNoOtherReplicaAfterItHasStopped) {
  const TemporaryFolder folder;
  const auto stopping = std::make_shared<Stopping>();

  // Each rank catches its own exception: the first one that throws would end the wait of the other.
  train_on_threads({.replicas = 2, .run_directory = folder.path(), .supervision = stopping},
                   [](Replica& replica) { EXPECT_THROW(train_small(replica), StopRequested); });

  EXPECT_EQ(stopping->last_phases(), std::vector<TrainingPhase>(2, TrainingPhase::finishing));
}

// Otherwise a training without a ModelCheckpoint would leave only what the program printed.
TEST(Trainer, LeavesItsFinalStateAsASavepointUnasked) {
  for (const int replicas : {1, 2}) {
    const TemporaryFolder folder;
    const Outcome outcome = outcome_of({.replicas = replicas, .run_directory = folder.path()});

    EXPECT_EQ(savepoint_files(folder.path()), std::vector<std::string>{"savepoint-0000000012.h5"});
    const auto idle = std::make_shared<AskedAt>(-1);
    expect_equal(outcome_of({.run_directory = folder.path(), .supervision = idle}), outcome);
    EXPECT_EQ(idle->samples(), 0);
  }
}

TEST(Trainer, LeavesTheFinalStateOfAFitThatACallbackEnded) {
  class EndAtStep final : public Callback {
   public:
    std::string name() const override { return "end_at_step"; }
    void on_step_end(TrainingContext& context, const Logs&) override {
      if (context.step() == 4) context.stop_training();
    }
  };
  const TemporaryFolder folder;

  outcome_of({.run_directory = folder.path()}, []() -> std::vector<CallbackHandle> { return {EndAtStep{}}; });

  EXPECT_EQ(savepoint_files(folder.path()), std::vector<std::string>{"savepoint-0000000004.h5"});
}

TEST(Trainer, LeavesOnlyTheFinalStateOfTheLastOfSeveralFits) {
  const TemporaryFolder folder;
  const TemporaryFolder copies;
  train_on_threads(
      {.replicas = 2, .run_directory = folder.path(), .savepoint_copies = {copies / "copy"}}, [](Replica& replica) {
        Trainer trainer(replica, small_model(), Adam(0.01F), SparseCategoricalCrossentropy({.from_logits = true}));
        for (int call = 0; call < 3; ++call) trainer.fit(small_data().shuffle().batch(10), {.epochs = 1});
      });

  EXPECT_EQ(savepoint_files(folder.path()), std::vector<std::string>{"savepoint-0000000018.h5"});
  EXPECT_EQ(savepoint_files(copies / "copy"), std::vector<std::string>{"savepoint-0000000018.h5"});
}

TEST(Trainer, AddsNoSavepointToThoseOfAModelCheckpoint) {
  const TemporaryFolder folder;
  const auto journal = std::make_shared<Journal>();

  outcome_of({.run_directory = folder.path(), .supervision = journal},
             []() -> std::vector<CallbackHandle> { return {ModelCheckpoint({.every_steps = 2, .keep_last = 2})}; });

  EXPECT_EQ(savepoint_files(folder.path()),
            (std::vector<std::string>{"savepoint-0000000010.h5", "savepoint-0000000012.h5"}));
  EXPECT_EQ(journal->details("savepoint").size(), 6U);
}

// The results are still in memory, and the program may save them elsewhere.
TEST(Trainer, ReturnsFromFitAlthoughItsFinalStateCannotBeSaved) {
  const TemporaryFolder folder;
  const auto journal = std::make_shared<Journal>();
  const auto full = when_saving("write", [] { throw Error(ErrorCode::disk_full, "no space left"); });

  const Outcome outcome =
      outcome_of({.run_directory = folder.path(), .supervision = journal, .file_system = full.get()});

  expect_equal(outcome, outcome_of({}));
  ASSERT_EQ(journal->details("savepoint_failed").size(), 1U);
  EXPECT_NE(journal->details("savepoint_failed")[0].find("no space left"), std::string::npos);
}

TEST(Trainer, RecordsInTheJournalWhatBecameOfEachSavepoint) {
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

}  // namespace holdfast
