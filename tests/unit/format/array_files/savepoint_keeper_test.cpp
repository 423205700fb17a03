// What is left in the folders after each save, above all when a savepoint or a copy turns out to be damaged.

#include "holdfast/format/savepoint_keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <set>

#include "holdfast/base/error.h"
#include "support/disks/memory_file_system.h"
#include "unit/format/support/array_files.h"
#include "unit/format/support/savepoints.h"
#include "unit/format/support/views.h"

namespace holdfast::format {
namespace {

using testing::damage;
using testing::read_savepoint;
using testing::thrown_by;
using testing::write_savepoint;
using StepList = std::vector<std::int64_t>;

class Keeper : public ::testing::Test {
 protected:
  Keeper() { files_.create_folders("/run"); }

  static std::string path(std::int64_t step, const std::string& folder = "/run") {
    return folder + "/" + savepoint_name(step);
  }

  // Saves a step and calls keep(), as a run does.
  void save(SavepointKeeper& keeper, std::int64_t step, double loss = 0) {
    write_savepoint(files_, path(step), step, loss);
    testing::expect_views_equal(path(step), files_);
    keeper.keep(savepoint_name(step));
  }

  // The steps of a folder's savepoints. All of them must be whole.
  StepList steps(const std::string& folder = "/run") {
    StepList steps;
    for (const SavepointEntry& entry : list_savepoints(files_, folder)) {
      EXPECT_EQ(read_savepoint(files_, folder + "/" + entry.name), entry.step);
      steps.push_back(entry.step);
    }
    return steps;
  }

  KeeperOptions options(RetentionPolicy retention, std::vector<std::string> copies = {}) {
    return {.copies = std::move(copies),
            .retention = retention,
            .best_by = "loss",
            .report = [this](const Problem& problem) { reports_.push_back(problem.path); }};
  }

  void flip_a_bit(const std::string& file) {
    FileContents contents = files_.contents();
    damage(contents, file);
    files_.remove(file);
    files_.create(file)->write_at(0, contents.at(file));
  }

  void cut_off(const std::string& file) {
    files_.remove(file);
    files_.create(file)->write_at(0, std::vector<std::byte>(600));
  }

  MemoryFileSystem files_;
  std::vector<std::string> reports_;
};

TEST_F(Keeper, KeepsTheNewest) {
  SavepointKeeper keeper(files_, "/run", options({.keep_last = 2}));

  for (std::int64_t step = 1; step <= 5; ++step) save(keeper, step);

  EXPECT_EQ(steps(), (StepList{4, 5}));
}

TEST_F(Keeper, KeepsTheBestByTheirMetadataAlsoAfterARestart) {
  const RetentionPolicy policy{.keep_last = 1, .keep_best = 2};
  SavepointKeeper before(files_, "/run", options(policy));
  save(before, 1, 0.5);
  save(before, 2, 0.3);
  save(before, 3, 0.9);
  ASSERT_EQ(steps(), (StepList{1, 2, 3}));

  SavepointKeeper after(files_, "/run", options(policy));
  save(after, 4, 0.7);
  EXPECT_EQ(steps(), (StepList{1, 2, 4}));
  save(after, 5, 0.4);
  EXPECT_EQ(steps(), (StepList{2, 5}));
}

TEST_F(Keeper, KeepsTheBestWhenAResumedRunFindsOnlyWorse) {
  const RetentionPolicy policy{.keep_last = 1, .keep_best = 1};
  SavepointKeeper before(files_, "/run", options(policy));
  save(before, 5, 0.1);

  // The run went back to a step before 5 and takes another course.
  SavepointKeeper after(files_, "/run", options(policy));
  for (std::int64_t step = 4; step <= 8; ++step) {
    if (step != 5) save(after, step, 0.2);
  }

  EXPECT_EQ(steps(), (StepList{5, 8}));
}

TEST_F(Keeper, AppliesTheRetentionToEachFolderOfCopiesSeparately) {
  SavepointKeeper keeper(files_, "/run", options({.keep_last = 2}, {"/a/b", "/c"}));

  for (std::int64_t step = 1; step <= 4; ++step) save(keeper, step);

  EXPECT_EQ(steps("/run"), (StepList{3, 4}));
  EXPECT_EQ(steps("/a/b"), (StepList{3, 4}));
  EXPECT_EQ(steps("/c"), (StepList{3, 4}));
  EXPECT_EQ(files_.contents().at(path(4, "/c")), files_.contents().at(path(4)));
  EXPECT_TRUE(reports_.empty());
}

TEST_F(Keeper, ReportsACopyThatFailsAndContinues) {
  const auto full = watched_file_system(files_, [](const FileOperation& operation) {
    if (operation.name == "write" && operation.path.starts_with("/copy")) throw system_error(ENOSPC, "cannot write");
  });
  SavepointKeeper keeper(*full, "/run", options({.keep_last = 1}, {"/copy", "/other"}));

  save(keeper, 1);
  save(keeper, 2);

  EXPECT_EQ(steps("/run"), (StepList{2}));
  EXPECT_EQ(steps("/other"), (StepList{2}));
  EXPECT_EQ(files_.list("/copy"), std::vector<std::string>{});
  EXPECT_EQ(reports_, (std::vector<std::string>{path(1, "/copy"), path(2, "/copy")}));
}

TEST_F(Keeper, DeletesNothingAfterASavepointThatReadsBackDamaged) {
  SavepointKeeper keeper(files_, "/run", options({.keep_last = 1}, {"/copy"}));
  save(keeper, 1);
  write_savepoint(files_, path(2), 2);
  flip_a_bit(path(2));

  EXPECT_EQ(thrown_by([&] { keeper.keep(savepoint_name(2)); }).code, ErrorCode::invalid_file);

  EXPECT_EQ(steps(), StepList{1});
  EXPECT_EQ(steps("/copy"), StepList{1});
  EXPECT_TRUE(files_.exists(path(2) + ".damaged"));
  EXPECT_EQ(reports_, std::vector<std::string>{path(2)});
}

TEST_F(Keeper, DeletesNothingAfterACopyThatReadsBackDamaged) {
  bool damages = false;
  const auto faulty = watched_file_system(files_, [&](const FileOperation& operation) {
    if (damages && operation.name == "open" && operation.path == path(2, "/copy")) flip_a_bit(operation.path);
  });
  SavepointKeeper keeper(*faulty, "/run", options({.keep_last = 1}, {"/copy"}));
  save(keeper, 1);
  damages = true;
  save(keeper, 2);

  EXPECT_EQ(steps(), StepList{2});
  EXPECT_EQ(steps("/copy"), StepList{1});
  EXPECT_TRUE(files_.exists(path(2, "/copy") + ".damaged"));
}

TEST_F(Keeper, VerifiesBeforeItDeletes) {
  std::vector<std::string> acts;
  const auto watched = watched_file_system(files_, [&](const FileOperation& operation) {
    if (operation.name == "remove") acts.push_back("remove");
    if (operation.name == "read" && operation.path == path(2) && operation.bytes > 1000) acts.push_back("read");
  });
  SavepointKeeper keeper(*watched, "/run", options({.keep_last = 1}));
  save(keeper, 1);
  save(keeper, 2);

  ASSERT_GE(acts.size(), 2U);
  EXPECT_EQ(acts.back(), "remove");
  EXPECT_EQ(std::count(acts.begin(), acts.end(), "remove"), 1);
}

TEST_F(Keeper, SetsAsideAnOldSavepointWhoseMetricCannotBeRead) {
  SavepointKeeper before(files_, "/run", options({.keep_last = 0}));
  for (std::int64_t step = 1; step <= 3; ++step) save(before, step, static_cast<double>(step));
  files_.remove(path(1));
  files_.create(path(1))->write_at(0, std::vector<std::byte>(600));
  SavepointKeeper keeper(files_, "/run", options({.keep_last = 1, .keep_best = 1}));

  save(keeper, 4, 4);

  EXPECT_EQ(steps(), (StepList{2, 4}));
  EXPECT_TRUE(files_.exists(path(1) + ".damaged.txt"));
}

// A file that a full disk had cut off counted as one of the last, and so one that was of use was deleted.
TEST_F(Keeper, KeepsAsManyOfTheLastAsItIsToldBesidesDamagedOnes) {
  SavepointKeeper before(files_, "/run", options({.keep_last = 0}));
  for (std::int64_t step = 1; step <= 5; ++step) save(before, step);
  for (const std::int64_t step : {3, 5}) cut_off(path(step));
  SavepointKeeper keeper(files_, "/run", options({.keep_last = 3}));

  save(keeper, 6);

  EXPECT_EQ(steps(), (StepList{2, 4, 6}));
  EXPECT_EQ(reports_, (std::vector<std::string>{path(5), path(3)}));
  EXPECT_TRUE(files_.exists(path(3) + ".damaged"));
}

// The file was out of the way, counted as one of the last, and cost an older one. Nothing was reported.
TEST_F(Keeper, DeletesNothingWhereADamagedOneCannotBeSetAside) {
  for (const std::string failing :
       {"/run/savepoint-0000000004.h5.damaged.txt", "/run/savepoint-0000000004.h5.damaged"}) {
    SCOPED_TRACE(failing);
    for (std::int64_t step = 1; step <= 4; ++step) write_savepoint(files_, path(step), step);
    cut_off(path(4));
    const auto full = watched_file_system(files_, [&](const FileOperation& operation) {
      if (operation.name == "rename" && operation.new_path == failing) throw system_error(ENOSPC, "cannot rename");
    });
    SavepointKeeper keeper(*full, "/run", options({.keep_last = 2}));

    save(keeper, 5);

    EXPECT_EQ(reports_, std::vector<std::string>{path(4)});
    for (const std::int64_t step : {1, 2, 3, 5}) EXPECT_TRUE(files_.exists(path(step))) << step;
    for (const std::string& name : files_.list("/run")) files_.remove("/run/" + name);
    reports_.clear();
  }
}

TEST_F(Keeper, SaysTheDamageOfASavepointThatCannotBeSetAside) {
  const auto full = watched_file_system(files_, [](const FileOperation& operation) {
    if (operation.name == "rename" && operation.path == path(2)) throw system_error(EIO, "cannot rename");
  });
  SavepointKeeper keeper(*full, "/run", options({.keep_last = 1}));
  save(keeper, 1);
  write_savepoint(files_, path(2), 2);
  flip_a_bit(path(2));

  EXPECT_EQ(thrown_by([&] { keeper.keep(savepoint_name(2)); }).code, ErrorCode::invalid_file);

  EXPECT_EQ(reports_, std::vector<std::string>{path(2)});
  EXPECT_TRUE(files_.exists(path(1)));
}

// One that could not be read counted as one of the last, and so fewer were of use than were asked for.
TEST_F(Keeper, KeepsOthersInThePlaceOfOneThatCannotBeRead) {
  for (const std::string best_by : {"", "loss"}) {
    SCOPED_TRACE(best_by);
    // The newest are the best, too.
    for (std::int64_t step = 1; step <= 5; ++step) {
      write_savepoint(files_, path(step), step, -static_cast<double>(step));
    }
    const auto failing = watched_file_system(files_, [](const FileOperation& operation) {
      if (operation.name == "read" && operation.path == path(4)) throw system_error(EIO, "cannot read");
    });
    SavepointKeeper keeper(*failing, "/run", options({.keep_last = 3, .keep_best = best_by.empty() ? 0 : 1}));

    save(keeper, 6, -6);
    EXPECT_EQ(steps(), (StepList{3, 4, 5, 6}));
    save(keeper, 7, -7);

    EXPECT_EQ(steps(), (best_by.empty() ? StepList{5, 6, 7} : StepList{4, 5, 6, 7}));
    EXPECT_EQ(reports_, std::vector<std::string>{path(4)}) << "once";
    for (const std::string& name : files_.list("/run")) files_.remove("/run/" + name);
    reports_.clear();
  }
}

TEST_F(Keeper, ReadsNoMoreThanItIsToldToKeep) {
  SavepointKeeper before(files_, "/run", options({.keep_last = 0}));
  for (std::int64_t step = 1; step <= 5; ++step) save(before, step);
  std::set<std::string> read;
  std::mutex read_mutex;  // files are verified in several threads
  const auto watched = watched_file_system(files_, [&](const FileOperation& operation) {
    const std::scoped_lock lock(read_mutex);
    if (operation.name == "read") read.insert(operation.path);
  });

  SavepointKeeper(*watched, "/run", options({.keep_last = 2})).prune();
  EXPECT_EQ(read, (std::set<std::string>{path(4), path(5)}));
  read.clear();
  SavepointKeeper(*watched, "/run", options({.keep_last = 2})).prune();

  EXPECT_EQ(read, (std::set<std::string>{path(5)})) << "nothing is to be deleted";
}

TEST_F(Keeper, ReadsEachFileOnce) {
  std::map<std::string, int> reads;
  std::mutex reads_mutex;  // files are verified in several threads
  const auto counting = watched_file_system(files_, [&](const FileOperation& operation) {
    const std::scoped_lock lock(reads_mutex);
    if (operation.name == "read") ++reads[operation.path];
  });
  SavepointKeeper keeper(*counting, "/run", options({.keep_last = 0, .keep_best = 1}));
  save(keeper, 1);
  const std::map<std::string, int> after_first = reads;

  for (std::int64_t step = 2; step <= 5; ++step) save(keeper, step);

  EXPECT_EQ(reads.at(path(1)), after_first.at(path(1)));
}

TEST_F(Keeper, LeavesFilesOfOtherNamesAlone) {
  for (const char* name : {"/run/savepoint-1.h5", "/run/savepoint-mine.h5", "/run/run.json"}) files_.create(name);
  SavepointKeeper keeper(files_, "/run", options({.keep_last = 1}));

  save(keeper, 1);
  save(keeper, 2);

  EXPECT_EQ(files_.list("/run").size(), 4U);
}

TEST_F(Keeper, PrunesOnlyWhatIsOlderThanTheNewestWholeSavepoint) {
  for (std::int64_t step = 1; step <= 4; ++step) write_savepoint(files_, path(step), step);
  flip_a_bit(path(4));
  SavepointKeeper keeper(files_, "/run", options({.keep_last = 1}));

  EXPECT_EQ(keeper.prune(), (std::vector<std::string>{savepoint_name(1), savepoint_name(2)}));

  EXPECT_EQ(steps(), StepList{3});
  EXPECT_TRUE(files_.exists(path(4) + ".damaged"));
}

TEST_F(Keeper, RefusesAnInvalidPolicy) {
  EXPECT_EQ(thrown_by([&] { SavepointKeeper(files_, "/run", options({.keep_last = -1})); }).code,
            ErrorCode::invalid_argument);
}

TEST_F(Keeper, ReturnsWhatATrialWouldDeleteAndChangesNothing) {
  SavepointKeeper keeper(files_, "/run", options({}));
  for (std::int64_t step = 1; step <= 4; ++step) save(keeper, step);
  flip_a_bit(path(4));
  const FileContents before = files_.contents();
  KeeperOptions trial_options = options({.keep_last = 1});
  trial_options.is_trial = true;
  SavepointKeeper trial(files_, "/run", trial_options);

  const std::vector<std::string> names = trial.prune();

  EXPECT_EQ(names, (std::vector<std::string>{savepoint_name(1), savepoint_name(2)}));
  EXPECT_EQ(reports_, std::vector<std::string>{path(4)});
  EXPECT_EQ(files_.contents(), before);
}

}  // namespace
}  // namespace holdfast::format
