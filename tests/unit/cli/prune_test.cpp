// `holdfast prune`: which savepoints it deletes, and when it refuses to.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <sstream>

#include "holdfast/format/array_file.h"
#include "holdfast/format/catalogue.h"
#include "holdfast/recovery/run_lock.h"
#include "support/temporary_folder.h"
#include "unit/cli/support/command_test.h"

namespace holdfast::cli {
namespace {

using ::testing::HasSubstr;

class Prune : public testing::CommandTest {
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

  void cut_in_half(const std::string& file) {
    const auto bytes = files_.contents().at(file);
    files_.remove(file);
    files_.create(file)->write_at(0, std::span(bytes).first(bytes.size() / 2));
  }
};

TEST_F(Prune, DeletesWhatNoRuleKeepsAndSaysSo) {
  write({0.5, 0.1, 0.4, 0.3, 0.2});

  EXPECT_EQ(run({"prune", "/run", "--keep-last", "2", "--keep-best", "1", "--by", "loss"}), kDone);

  EXPECT_EQ(out(), "deleted " + path(1) + "\ndeleted " + path(3) + "\n2 savepoints deleted, 3 stay\n");
  EXPECT_EQ(problems(), "");
  EXPECT_EQ(files_.list("/run").size(), 3U);
}

TEST_F(Prune, DryRunNamesWhatItWouldDeleteAndDeletesNothing) {
  write({0.5, 0.1, 0.4});
  const FileContents before = files_.contents();

  EXPECT_EQ(run({"prune", "/run", "--keep-last", "2", "--dry-run"}), kDone);

  EXPECT_EQ(out(), "would be deleted " + path(1) + "\n1 savepoint would be deleted, 2 would stay\n");
  EXPECT_EQ(files_.contents(), before);
}

TEST_F(Prune, DryRunSetsNothingAside) {
  write({0.5, 0.1, 0.4});
  cut_in_half(path(3));
  const FileContents before = files_.contents();

  EXPECT_EQ(run({"prune", "/run", "--keep-last", "1", "--dry-run"}), kDamaged);

  EXPECT_THAT(out(), HasSubstr("would be deleted " + path(1)));
  EXPECT_THAT(problems(), HasSubstr(path(3)));
  EXPECT_EQ(files_.contents(), before);
}

TEST_F(Prune, SetsADamagedNewestSavepointAsideAndKeepsTheOneBefore) {
  write({0.5, 0.1, 0.4});
  cut_in_half(path(3));

  EXPECT_EQ(run({"prune", "/run", "--keep-last", "1"}), kDamaged);

  EXPECT_EQ(files_.list("/run"),
            (std::vector<std::string>{format::savepoint_name(2), format::savepoint_name(3) + ".damaged",
                                      format::savepoint_name(3) + ".damaged.txt"}));
  EXPECT_THAT(problems(), HasSubstr(path(3) + ".damaged"));
}

TEST_F(Prune, DeletesNothingWhenTheBestCannotBeFound) {
  write({0.5, 0.1, 0.4});

  EXPECT_EQ(run({"prune", "/run", "--keep-last", "1", "--keep-best", "1", "--by", "accuracy"}), kNotDone);

  EXPECT_THAT(problems(), HasSubstr("\"accuracy\""));
  EXPECT_EQ(files_.list("/run").size(), 3U);
}

TEST_F(Prune, RefusesToDoNothing) {
  EXPECT_EQ(run({"prune", "/run", "--keep-last", "1"}), kNotDone);
  EXPECT_THAT(problems(), HasSubstr("no savepoint-*.h5"));
  write({0.5});
  EXPECT_EQ(run({"prune", "/run", "--keep-best", "1"}), kNotDone);
  EXPECT_THAT(problems(), HasSubstr("--keep-last"));
}

TEST_F(Prune, NamesAMissingFolderBeforeItAsksForRules) {
  EXPECT_EQ(run({"prune", "/nope"}), kNotDone);

  EXPECT_EQ(problems(), "holdfast: there is no folder /nope\n");
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
  int prune_to_one(const std::string& folder, const std::vector<std::string>& options = {}) {
    std::vector<std::string> arguments = {"prune", folder, "--keep-last", "1"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    Console console{.out = out_, .problems = problems_};
    return run_command(arguments, posix_file_system(), console);
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

  EXPECT_EQ(prune_to_one(run_), kNotDone);

  EXPECT_THAT(problems_.str(), HasSubstr("a run is live in " + run_));
  EXPECT_EQ(savepoints_in(run_), 2U);
  EXPECT_EQ(prune_to_one(run_, {"--dry-run"}), kDone);
  EXPECT_THAT(out_.str(), HasSubstr("1 savepoint would be deleted"));
}

TEST_F(PruneOfARun, DeletesNothingInAFolderOfALiveRun) {
  write_two(run_ + "/best");
  std::ofstream(run_ + "/journal.jsonl") << "{}\n";
  const FileDescriptor lock = recovery::lock_run_directory(run_, Deadline::after(std::chrono::seconds(0)));

  EXPECT_EQ(prune_to_one(run_ + "/best"), kNotDone);

  EXPECT_THAT(problems_.str(), HasSubstr("a run is live in " + run_));
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
