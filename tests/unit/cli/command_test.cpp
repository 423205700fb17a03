// The command line: help, errors in options, and errors of actions. Also the options of `holdfast prune`.

#include "command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <new>

#include "holdfast/format/catalogue.h"
#include "unit/cli/support/command_test.h"

namespace holdfast::cli {
namespace {

using ::testing::HasSubstr;
using Command = testing::CommandTest;

TEST_F(Command, ExplainsItself) {
  EXPECT_EQ(run({"--help"}), kDone);
  for (const char* name : {"inspect", "verify", "diff", "stats", "convert", "prune", "run", "chaos"}) {
    EXPECT_THAT(out(), HasSubstr(name));
  }
  EXPECT_EQ(run({"convert", "--help"}), kDone);
  EXPECT_THAT(out(), HasSubstr("portable"));
  EXPECT_EQ(problems(), "");
}

TEST_F(Command, SaysItsVersion) {
  EXPECT_EQ(run({"--version"}), kDone);

  EXPECT_THAT(out(), ::testing::MatchesRegex("holdfast [0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

TEST_F(Command, NamesAnUnknownCommand) {
  EXPECT_EQ(run({"frobnicate", "--version"}), kNotDone);

  EXPECT_THAT(problems(), HasSubstr("no command \"frobnicate\""));
  EXPECT_EQ(out(), "");
}

TEST_F(Command, SaysWhichValuesAnOptionTakes) {
  EXPECT_EQ(run({"diff", "a", "b", "--tolerance", "inf"}), kNotDone);
  EXPECT_THAT(problems(), HasSubstr("--tolerance: inf is not a number of at least 0\n"));
  EXPECT_EQ(run({"prune", "/d", "--keep-last", "-1"}), kNotDone);
  EXPECT_THAT(problems(), HasSubstr("--keep-last: -1 is not a whole number of at least 0\n"));
  EXPECT_EQ(run({"convert", "a", "b", "--compression", "gzip"}), kNotDone);
  EXPECT_THAT(problems(), HasSubstr("--compression: gzip is not one of fast, zstd, none\n"));
  EXPECT_EQ(run({"run", "--when-lost", "cry", "--", "true"}), kNotDone);
  EXPECT_THAT(problems(), HasSubstr("--when-lost: cry is not one of wait, shrink\n"));
}

TEST_F(Command, RefusesWrongUsage) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{},
                                             {"inspekt"},
                                             {"inspect"},
                                             {"inspect", "/d", "--yaml"},
                                             {"prune", "/d", "--keep-last", "-1"},
                                             {"run"},
                                             {"run", "--replicas", "0", "--", "true"},
                                             {"run", "true"}}) {
    EXPECT_EQ(run(arguments), kNotDone);
    EXPECT_NE(problems(), "");
    EXPECT_EQ(out(), "");
  }
}

TEST_F(Command, PrintsAnErrorInOneLineWithoutTerminalCommands) {
  EXPECT_EQ(run({"inspect", "/d/\x1b[2J\n"}), kNotDone);

  const std::string said = problems();
  EXPECT_THAT(said, ::testing::StartsWith("holdfast: "));
  EXPECT_THAT(said, HasSubstr("/d/?[2J?"));
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1);
}

TEST_F(Command, ReportsALackOfMemory) {
  write("/d/a.h5", {{"x", {1}, {1}}});
  const auto failing = watched_file_system(files_, [](const FileOperation&) { throw std::bad_alloc(); });
  std::ostringstream out;
  std::ostringstream said;
  Console console{.out = out, .problems = said};

  EXPECT_EQ(run_command({"stats", "/d/a.h5"}, *failing, console), kNotDone);

  EXPECT_THAT(said.str(), HasSubstr("memory"));
}

class PruneCommand : public testing::CommandTest {
 protected:
  PruneCommand() {
    const std::vector<double> losses = {0.5, 0.1, 0.9, 0.4};
    for (std::size_t i = 0; i < losses.size(); ++i) {
      write(path(i + 1), {}, R"({"metrics": {"loss": )" + std::to_string(losses[i]) + "}}");
    }
  }

  static std::string path(std::size_t step) { return "/d/" + format::savepoint_name(static_cast<std::int64_t>(step)); }
  std::vector<std::int64_t> steps() {
    std::vector<std::int64_t> result;
    for (const format::SavepointEntry& entry : format::list_savepoints(files_, "/d")) result.push_back(entry.step);
    return result;
  }
};

TEST_F(PruneCommand, KeepsTheLast) {
  EXPECT_EQ(run({"prune", "/d", "--keep-last", "2"}), kDone) << problems();
  EXPECT_THAT(steps(), ::testing::ElementsAre(3, 4));
}

TEST_F(PruneCommand, KeepsTheLowestUnlessToldOtherwise) {
  EXPECT_EQ(run({"prune", "/d", "--keep-last", "1", "--keep-best", "1", "--by", "loss"}), kDone) << problems();
  EXPECT_THAT(steps(), ::testing::ElementsAre(2, 4));
}

TEST_F(PruneCommand, KeepsTheHighestWhenTold) {
  for (const char* name : {"highest", "max"}) {
    EXPECT_EQ(run({"prune", "/d", "--keep-last", "1", "--keep-best", "1", "--by", "loss", "--best", name}), kDone)
        << problems();
    EXPECT_THAT(steps(), ::testing::ElementsAre(3, 4));
  }
  EXPECT_EQ(run({"prune", "/d", "--keep-last", "1", "--best", "average"}), kNotDone);
}

TEST_F(PruneCommand, KeepsSavepointsWhoseStepIsAMultiple) {
  EXPECT_EQ(run({"prune", "/d", "--keep-last", "1", "--keep-every", "2"}), kDone) << problems();
  EXPECT_THAT(steps(), ::testing::ElementsAre(2, 4));
}

TEST_F(PruneCommand, KeepsWithinABudget) {
  const std::uint64_t bytes = files_.contents().at(path(4)).size();

  EXPECT_EQ(run({"prune", "/d", "--max-bytes", std::to_string(2 * bytes + 100)}), kDone) << problems();
  EXPECT_THAT(steps(), ::testing::ElementsAre(3, 4));
  EXPECT_EQ(run({"prune", "/d", "--max-bytes", "1GiB"}), kDone) << problems();
  EXPECT_THAT(steps(), ::testing::ElementsAre(3, 4));
}

TEST_F(PruneCommand, ChangesNothingInADryRun) {
  const FileContents before = files_.contents();

  EXPECT_EQ(run({"prune", "/d", "--keep-last", "1", "--dry-run"}), kDone) << problems();

  EXPECT_THAT(out(), HasSubstr("3 savepoints would be deleted, 1 would stay"));
  EXPECT_EQ(files_.contents(), before);
}

}  // namespace
}  // namespace holdfast::cli
