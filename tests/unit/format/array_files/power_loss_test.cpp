// The power fails at any moment of saving, rotating, deleting and setting aside. Afterwards the newest savepoint that
// was reported as durable, or a newer one, is found and loads bit for bit. Each state of a disk is one draw from
// tests/support/disks/crash_disk.h.
//
// HOLDFAST_LONG_TESTS=1 checks more than 100,000 different states, which takes minutes.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "holdfast/base/digest.h"
#include "holdfast/base/error.h"
#include "holdfast/format/catalogue.h"
#include "holdfast/format/savepoint_keeper.h"
#include "support/disks/crash_disk.h"
#include "support/long_run.h"
#include "unit/format/support/savepoints.h"

namespace holdfast::format {
namespace {

using testing::damage;
using testing::read_savepoint;
using testing::write_savepoint;

constexpr const char* kFolder = "/run";
const std::vector<std::string> kFolders = {kFolder};

std::string path(std::int64_t step) {
  return std::string(kFolder) + "/" + savepoint_name(step);
}

FileContents savepoints(const std::vector<std::int64_t>& steps) {
  MemoryFileSystem files;
  files.create_folders(kFolder);
  files.create("/run/run.json")->write_at(0, std::as_bytes(std::span("{}", 2)));
  for (const std::int64_t step : steps) write_savepoint(files, path(step), step, static_cast<double>(step));
  return files.contents();
}

// Draws that leave the same files count as one state.
Digest digest_of(const FileContents& contents) {
  DigestBuilder builder;
  for (const auto& [file, bytes] : contents) {
    const std::uint64_t size = bytes.size();
    builder.update(std::as_bytes(std::span(file.c_str(), file.size() + 1)));
    builder.update(std::as_bytes(std::span(&size, 1)));
    builder.update(bytes);
  }
  return builder.finish();
}

class PowerLoss : public ::testing::Test {
 protected:
  struct Promise {
    std::size_t operations;  // how many had happened
    std::int64_t step;       // that was durable then
  };

  // Records what `program` does to a disk that contains `before`. The program calls promise() when a run would report
  // a savepoint as durable.
  void record(const FileContents& before, const std::function<void(FileSystem&)>& program) {
    before_ = before;
    MemoryFileSystem memory(before);
    OperationRecorder recorder(memory);
    recorder_ = &recorder;
    program(recorder.files());
    operations_ = recorder.operations();
    recorder_ = nullptr;
  }

  void promise(std::int64_t step) {
    promises_.push_back({.operations = recorder_ == nullptr ? 0 : recorder_->count(), .step = step});
  }

  // Does what every start of a run does, with the files that the power cut left.
  std::int64_t recover(const FileContents& left) {
    MemoryFileSystem files(left);
    std::int64_t step = -1;
    find_newest_savepoint(files, kFolders, [&](const std::string& found) { step = read_savepoint(files, found); },
                          {.is_owner = true, .report = [&](const Problem& problem) {
                             EXPECT_TRUE(damaged_.contains(problem.path))
                                 << problem.path << " should be whole: " << problem.why;
                           }});
    for (const auto& [file, bytes] : files.contents()) {
      EXPECT_EQ(file.find(".tmp"), std::string::npos) << file << " was left";
    }
    EXPECT_TRUE(files.exists("/run/run.json"));
    return step;
  }

  // Cuts the power after each operation. Checks that what is found is one of `allowed` and not older than what was
  // promised by then. Returns the steps that were found.
  std::set<std::int64_t> cut_everywhere(const std::set<std::int64_t>& allowed) {
    std::set<std::int64_t> found;
    look_at_states([&](const FileContents& left) { return recover(left); },
                   [&](std::size_t done, std::int64_t step) {
                     EXPECT_GE(step, promised(done)) << "after " << done << " operations";
                     EXPECT_TRUE(allowed.contains(step)) << step << " after " << done << " operations";
                     found.insert(step);
                   });
    return found;
  }

  // Cuts the power after every operation, again and again, until there are enough different states or hardly any new
  // ones. `recover` is called once for each state. `check` is called for each cut: the same files may be enough early
  // on, and too little once more was promised.
  void look_at_states(const std::function<std::int64_t(const FileContents&)>& recover,
                      const std::function<void(std::size_t done, std::int64_t step)>& check) {
    const std::size_t cuts = is_long_run() ? 25'000 : 600;
    for (std::uint64_t pass = 0;; ++pass) {
      const std::size_t known = states_.size();
      look_once(cuts, pass, recover, check);
      const bool is_exhausted = states_.size() - known < cuts / 1000;
      if (!is_long_run() || HasFailure() || is_exhausted || states_.size() >= kStatesOfLongRun) return;
    }
  }

  // The number of power cuts is how often a disk was checked; states are the different disks among them.
  void TearDown() override {
    RecordProperty("power_cuts", static_cast<int>(power_cuts_));
    RecordProperty("states", static_cast<int>(states_.size()));
  }

  std::set<std::string> damaged_;  // before the power failed

 private:
  // Five of the programs below have this many; together they have more than 100,000.
  static constexpr std::size_t kStatesOfLongRun = 22'000;

  void look_once(std::size_t cuts, std::uint64_t pass, const std::function<std::int64_t(const FileContents&)>& recover,
                 const std::function<void(std::size_t done, std::int64_t step)>& check) {
    const std::size_t draws = cuts / (operations_.size() + 1) + 1;
    CrashDisk disk(before_);
    for (std::size_t done = 0;; ++done) {
      for (std::size_t i = 0; i < draws && !HasFailure(); ++i) {
        CrashDisk::Random random((pass * 1000 + done) * 1'000'000 + i);
        const FileContents left = disk.after_power_cut(random);
        ++power_cuts_;
        const auto [state, is_new] = states_.try_emplace(digest_of(left).bytes, -1);
        if (is_new) state->second = recover(left);
        check(done, state->second);
      }
      if (done == operations_.size()) return;
      disk.apply(operations_[done]);
    }
  }

  std::int64_t promised(std::size_t done) const {
    std::int64_t step = -1;
    for (const Promise& each : promises_) {
      if (each.operations <= done) step = std::max(step, each.step);
    }
    return step;
  }

  std::size_t power_cuts_ = 0;
  std::map<std::array<std::uint8_t, 16>, std::int64_t> states_;  // digest -> what recover() finds in it
  FileContents before_;
  OperationRecorder* recorder_ = nullptr;
  std::vector<DiskOperation> operations_;
  std::vector<Promise> promises_;
};

using StepSet = std::set<std::int64_t>;

TEST_F(PowerLoss, FindsTheOldOrTheNewWhenAnotherStepIsSaved) {
  promise(1);
  record(savepoints({1}), [&](FileSystem& files) {
    write_savepoint(files, path(2), 2);
    promise(2);
  });

  EXPECT_EQ(cut_everywhere({1, 2}), (StepSet{1, 2}));
}

TEST_F(PowerLoss, FindsNothingOrTheFirstSavepoint) {
  record(savepoints({}), [&](FileSystem& files) {
    write_savepoint(files, path(7), 7);
    promise(7);
  });

  EXPECT_EQ(cut_everywhere({-1, 7}), (StepSet{-1, 7}));
}

TEST_F(PowerLoss, FindsTheOldOrTheNewWhenOneIsSavedOverAnother) {
  // The content of step 3 under the name of step 1 shows which of the two is found.
  promise(1);
  record(savepoints({1}), [&](FileSystem& files) {
    write_savepoint(files, path(1), 3);
    promise(3);
  });

  EXPECT_EQ(cut_everywhere({1, 3}), (StepSet{1, 3}));
}

TEST_F(PowerLoss, NeverGoesBackWhileOldSavepointsAreRotatedOut) {
  promise(2);
  record(savepoints({1, 2}), [&](FileSystem& files) {
    SavepointKeeper keeper(files, kFolder, {.retention = {.keep_last = 2}});
    for (std::int64_t step = 3; step <= 6; ++step) {
      write_savepoint(files, path(step), step);
      promise(step);
      keeper.keep(savepoint_name(step));
    }
  });

  EXPECT_EQ(cut_everywhere({2, 3, 4, 5, 6}), (StepSet{2, 3, 4, 5, 6}));
}

TEST_F(PowerLoss, KeepsTheBestWhileOthersAreRotatedOut) {
  record(savepoints({1, 2}), [&](FileSystem& files) {
    SavepointKeeper keeper(files, kFolder, {.retention = {.keep_last = 1, .keep_best = 1}, .best_by = "loss"});
    for (std::int64_t step = 3; step <= 5; ++step) {
      write_savepoint(files, path(step), step, static_cast<double>(step));
      keeper.keep(savepoint_name(step));
    }
  });

  const auto read_best = [](const FileContents& left) {
    MemoryFileSystem files(left);
    return read_savepoint(files, path(1));
  };
  look_at_states(read_best,
                 [](std::size_t done, std::int64_t step) { EXPECT_EQ(step, 1) << "after " << done << " operations"; });
}

TEST_F(PowerLoss, FindsTheNewestWhenOldSavepointsAreDeleted) {
  promise(5);
  record(savepoints({1, 2, 3, 4, 5}),
         [&](FileSystem& files) { SavepointKeeper(files, kFolder, {.retention = {.keep_last = 1}}).prune(); });

  EXPECT_EQ(cut_everywhere({5}), StepSet{5});
}

TEST_F(PowerLoss, FindsTheSavepointBeforeWhenADamagedOneIsSetAside) {
  FileContents before = savepoints({1, 2});
  damage(before, path(2));
  damaged_ = {path(2)};
  promise(1);
  record(before, [&](FileSystem& files) {
    find_newest_savepoint(files, kFolders, [&](const std::string& found) { read_savepoint(files, found); },
                          {.is_owner = true});
  });

  EXPECT_EQ(cut_everywhere({1}), StepSet{1});
}

// A writer that forgets a sync must be caught. Otherwise the tests above could pass whatever the writer does.
class CarelessWriter : public PowerLoss, public ::testing::WithParamInterface<std::string> {
 protected:
  // How many power cuts during the save of step 2 leave something damaged, or less than was promised.
  static std::size_t losses_without(const std::string& forgotten) {
    const FileContents before = savepoints({1});
    MemoryFileSystem memory(before);
    OperationRecorder recorder(memory);
    write_savepoint(recorder.files(), path(1), 2);

    CrashDisk disk(before);
    for (const DiskOperation& operation : recorder.operations()) {
      if (operation.operation.name != forgotten) disk.apply(operation);
    }
    std::size_t losses = 0;
    for (unsigned i = 0; i < 200; ++i) {
      CrashDisk::Random random(i);
      MemoryFileSystem left(disk.after_power_cut(random));
      try {
        if (read_savepoint(left, path(1)) != 2) ++losses;
      } catch (const Error&) {
        ++losses;
      }
    }
    return losses;
  }
};

TEST_P(CarelessWriter, IsCaught) {
  EXPECT_GT(losses_without(GetParam()), 20U);
  EXPECT_EQ(losses_without("nothing"), 0U);
}

INSTANTIATE_TEST_SUITE_P(Without, CarelessWriter, ::testing::Values("sync", "sync_folder"));

}  // namespace
}  // namespace holdfast::format
