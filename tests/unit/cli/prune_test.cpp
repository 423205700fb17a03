// `holdfast prune`: which savepoints it deletes, and when it refuses to.

#include "prune.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <sstream>

#include "exit_code.h"
#include "holdfast/base/error.h"
#include "holdfast/format/array_file.h"
#include "holdfast/format/catalogue.h"
#include "holdfast/recovery/run_lock.h"
#include "support/memory_file_system.h"
#include "support/temporary_folder.h"

namespace holdfast::cli {
namespace {

using ::testing::HasSubstr;

template <typename Action>
std::string sentence_thrown_by(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

class Prune : public ::testing::Test {
 protected:
  Prune() { files_.create_folders("/run"); }

  static std::string path(std::int64_t step) { return "/run/" + format::savepoint_name(step); }

  // Writes savepoints of steps 1, 2, and so on.
  void write(const std::vector<double>& losses) {
    for (std::size_t i = 0; i < losses.size(); ++i) {
      const std::string metadata = R"({"metrics": {"loss": )" + std::to_string(losses[i]) + "}}";
      format::write_array_file(files_, path(static_cast<std::int64_t>(i) + 1), metadata, {});
    }
  }

  int prune_with(PruneOptions options) {
    options.folder = "/run";
    Console console{.out = out_, .problems = problems_};
    return prune(files_, options, console);
  }

  std::string sentence_of(const PruneOptions& options) {
    return sentence_thrown_by([&] { prune_with(options); });
  }

  MemoryFileSystem files_;
  std::ostringstream out_;
  std::ostringstream problems_;
};

TEST_F(Prune, DeletesWhatNoRuleKeepsAndSaysSo) {
  write({0.5, 0.1, 0.4, 0.3, 0.2});

  EXPECT_EQ(prune_with({.folder = {}, .retention = {.keep_last = 2, .keep_best = 1}, .best_by = "loss"}), kDone);

  EXPECT_EQ(out_.str(), "deleted " + path(1) + "\ndeleted " + path(3) + "\n2 savepoints deleted, 3 stay\n");
  EXPECT_EQ(problems_.str(), "");
  EXPECT_EQ(files_.list("/run").size(), 3U);
}

TEST_F(Prune, DryRunNamesWhatItWouldDeleteAndDeletesNothing) {
  write({0.5, 0.1, 0.4});
  const FileContents before = files_.contents();

  EXPECT_EQ(prune_with({.folder = {}, .retention = {.keep_last = 2}, .is_trial = true}), kDone);

  EXPECT_EQ(out_.str(), "would be deleted " + path(1) + "\n1 savepoint would be deleted, 2 would stay\n");
  EXPECT_EQ(files_.contents(), before);
}

TEST_F(Prune, DryRunSetsNothingAside) {
  write({0.5, 0.1, 0.4});
  const auto bytes = files_.contents().at(path(3));
  files_.remove(path(3));
  files_.create(path(3))->write_at(0, std::span(bytes).first(bytes.size() / 2));
  const FileContents before = files_.contents();

  EXPECT_EQ(prune_with({.folder = {}, .retention = {.keep_last = 1}, .is_trial = true}), kDamaged);

  EXPECT_THAT(out_.str(), HasSubstr("would be deleted " + path(1)));
  EXPECT_THAT(problems_.str(), HasSubstr(path(3)));
  EXPECT_EQ(files_.contents(), before);
}

TEST_F(Prune, SetsADamagedNewestSavepointAsideAndKeepsTheOneBefore) {
  write({0.5, 0.1, 0.4});
  const auto bytes = files_.contents().at(path(3));
  files_.remove(path(3));
  files_.create(path(3))->write_at(0, std::span(bytes).first(bytes.size() / 2));

  EXPECT_EQ(prune_with({.folder = {}, .retention = {.keep_last = 1}}), kDamaged);

  EXPECT_EQ(files_.list("/run"),
            (std::vector<std::string>{format::savepoint_name(2), format::savepoint_name(3) + ".damaged",
                                      format::savepoint_name(3) + ".damaged.txt"}));
  EXPECT_THAT(problems_.str(), HasSubstr(path(3) + ".damaged"));
}

TEST_F(Prune, DeletesNothingWhenTheBestCannotBeFound) {
  write({0.5, 0.1, 0.4});

  EXPECT_THAT(sentence_of({.folder = {}, .retention = {.keep_last = 1, .keep_best = 1}, .best_by = "accuracy"}),
              HasSubstr("\"accuracy\""));

  EXPECT_EQ(files_.list("/run").size(), 3U);
}

TEST_F(Prune, RefusesToDoNothing) {
  EXPECT_THAT(sentence_of({.folder = {}, .retention = {.keep_last = 1}}), HasSubstr("no savepoint-*.h5"));
  write({0.5});
  EXPECT_THAT(sentence_of({.folder = {}, .retention = {.keep_best = 1}}), HasSubstr("--keep-last"));
}

TEST_F(Prune, NamesAMissingFolderBeforeItAsksForRules) {
  Console console{.out = out_, .problems = problems_};

  EXPECT_EQ(sentence_thrown_by([&] { prune(files_, {.folder = "/nope"}, console); }), "there is no folder /nope");
}

// Locks belong to the kernel, so these tests use real folders.
class PruneOfARun : public ::testing::Test {
 protected:
  void write_two(const std::string& folder) {
    FileSystem& files = posix_file_system();
    files.create_folders(folder);
    for (const std::int64_t step : {1, 2}) {
      format::write_array_file(files, folder + "/" + format::savepoint_name(step), "{}", {});
    }
  }
  int prune_to_one(const std::string& folder, bool is_trial = false) {
    Console console{.out = out_, .problems = problems_};
    return prune(posix_file_system(), {.folder = folder, .retention = {.keep_last = 1}, .is_trial = is_trial}, console);
  }
  static std::size_t savepoints_in(const std::string& folder) {
    return format::list_savepoints(posix_file_system(), folder).size();
  }

  const TemporaryFolder folder_;
  const std::string run_ = folder_ / "run";
  std::ostringstream out_;
  std::ostringstream problems_;
};

TEST_F(PruneOfARun, DeletesNothingWhileTheRunIsLive) {
  write_two(run_);
  const FileDescriptor lock = recovery::lock_run_directory(run_, Deadline::after(std::chrono::seconds(0)));

  EXPECT_THAT(sentence_thrown_by([&] { prune_to_one(run_); }), HasSubstr("a run is live in " + run_));

  EXPECT_EQ(savepoints_in(run_), 2U);
  EXPECT_EQ(prune_to_one(run_, true), kDone);
  EXPECT_THAT(out_.str(), HasSubstr("1 savepoint would be deleted"));
}

TEST_F(PruneOfARun, DeletesNothingInAFolderOfALiveRun) {
  write_two(run_ + "/best");
  std::ofstream(run_ + "/journal.jsonl") << "{}\n";
  const FileDescriptor lock = recovery::lock_run_directory(run_, Deadline::after(std::chrono::seconds(0)));

  EXPECT_THAT(sentence_thrown_by([&] { prune_to_one(run_ + "/best"); }), HasSubstr("a run is live in " + run_));

  EXPECT_EQ(savepoints_in(run_ + "/best"), 2U);
}

TEST_F(PruneOfARun, DeletesOnceTheRunHasEndedAndLeavesTheLockFree) {
  write_two(run_);
  recovery::lock_run_directory(run_, Deadline::after(std::chrono::seconds(0))).reset();

  EXPECT_EQ(prune_to_one(run_), kDone);

  EXPECT_EQ(savepoints_in(run_), 1U);
  EXPECT_TRUE(recovery::lock_run_directory(run_, Deadline::after(std::chrono::seconds(0))).is_open());
}

TEST_F(PruneOfARun, CreatesNoLockInAFolderWithoutARun) {
  write_two(folder_.path());

  EXPECT_EQ(prune_to_one(folder_.path()), kDone);

  EXPECT_FALSE(posix_file_system().exists(folder_ / "lock"));
}

}  // namespace
}  // namespace holdfast::cli
