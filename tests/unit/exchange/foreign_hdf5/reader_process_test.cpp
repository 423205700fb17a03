// What the helper program can do in its sandbox, and what happens when another program takes its place.

#include "foreign_hdf5/reader_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "foreign_hdf5/tree.h"
#include "holdfast/format/hdf5_reader.h"
#include "support/program.h"
#include "support/temporary_folder.h"
#include "unit/exchange/support/trees.h"

namespace holdfast::format {
namespace {

using ::testing::HasSubstr;

constexpr int kBadSystemCall = 128 + 31;  // SIGSYS
constexpr int kProcessorTime = 128 + 24;  // SIGXCPU

ProgramResult try_action(const std::string& action) {
  return run_program(built_program("holdfast-hdf5-reader"), {"--try", action});
}

TEST(LockedInReader, ComputesAndWritesToItsOutput) {
  const ProgramResult result = try_action("compute");

  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.output, "done");
}

class LockedInReaderDies : public ::testing::TestWithParam<const char*> {};

TEST_P(LockedInReaderDies, OnAForbiddenAction) {
  EXPECT_EQ(try_action(GetParam()).exit_code, kBadSystemCall);
}

INSTANTIATE_TEST_SUITE_P(All, LockedInReaderDies,
                         ::testing::Values("open", "create", "create-memory", "truncate", "remove", "trace", "io-uring",
                                           "read", "write-other", "socket", "exec", "fork", "thread", "kill",
                                           "map-file", "map-executable", "make-executable", "other-abi"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(LockedInReader, GetsNoMoreMemoryThanItsLimit) {
  EXPECT_EQ(try_action("memory").exit_code, 42);
}

TEST(LockedInReader, GetsNoMoreProcessorTimeThanItsLimit) {
  EXPECT_EQ(try_action("cpu").exit_code, kProcessorTime);
}

// Puts a script in place of the helper program.
class Impostor : public ::testing::Test {
 protected:
  ~Impostor() override { set_hdf5_reader_path(""); }

  // Writes `script` and makes it the helper.
  void install(const std::string& script) {
    const std::string path = folder_ / "reader";
    std::ofstream(path) << "#!/bin/sh\n" << script << "\n";
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    set_hdf5_reader_path(path);
  }

  testing::Thrown thrown_by_reading(std::chrono::seconds patience = std::chrono::seconds(60)) const {
    TreeLimits limits;
    limits.time = patience;
    return testing::thrown_by([&] { read_hdf5_tree(file_, "a.h5", limits); });
  }

  const TemporaryFolder folder_;
  const std::vector<std::byte> file_ = compose_hdf5_tree("a.h5", testing::every_kind_of_content());
};

TEST_F(Impostor, ThatIsKilledIsReported) {
  install("kill -SEGV $$");

  const testing::Thrown thrown = thrown_by_reading();

  EXPECT_EQ(thrown.code, ErrorCode::invalid_file);
  EXPECT_THAT(thrown.sentence, HasSubstr("a.h5 is refused: the program that reads HDF5 files failed on it (signal 11"));
}

TEST_F(Impostor, ThatExitsIsReported) {
  install("exit 3");

  const testing::Thrown thrown = thrown_by_reading();

  EXPECT_EQ(thrown.code, ErrorCode::invalid_file);
  EXPECT_THAT(thrown.sentence, HasSubstr("failed on it (exit code 3)"));
}

TEST_F(Impostor, ThatHangsIsStopped) {
  install("echo $$ > " + (folder_ / "pid") + "; exec /bin/sleep 1000");

  // A busy machine may start it later than that.
  int pid = 0;
  for (int seconds = 1; pid == 0; seconds *= 4) {
    const testing::Thrown thrown = thrown_by_reading(std::chrono::seconds(seconds));

    EXPECT_EQ(thrown.code, ErrorCode::deadline_exceeded);
    EXPECT_THAT(thrown.sentence, HasSubstr("made no progress for " + std::to_string(seconds) + " s"));
    ASSERT_LT(seconds, 100) << "it was never run";
    std::ifstream(folder_ / "pid") >> pid;
  }
  EXPECT_EQ(::kill(pid, 0), -1) << "the helper outlived its reader";
}

TEST_F(Impostor, ThatSendsGarbageIsReported) {
  install("echo 'This is not a tree, but a text that somebody made the program write.'");

  const testing::Thrown thrown = thrown_by_reading();

  EXPECT_EQ(thrown.code, ErrorCode::invalid_file);
  EXPECT_THAT(thrown.sentence, HasSubstr("sent invalid records"));
}

TEST_F(Impostor, ThatNeverStopsSendingIsReported) {
  install("while :; do printf '\\003\\000\\000\\000\\000\\000\\000\\000\\001'; done");

  EXPECT_EQ(thrown_by_reading().code, ErrorCode::invalid_file);
}

TEST_F(Impostor, GetsNeitherEnvironmentNorOpenFiles) {
  ASSERT_EQ(::setenv("HOLDFAST_SECRET", "42", 1), 0);
  std::ofstream held(folder_ / "held");  // an open descriptor while the helper runs
  install("/usr/bin/env > " + (folder_ / "environment") + "; ls /proc/self/fd | tr '\\n' ' ' > " +
          (folder_ / "descriptors"));

  thrown_by_reading();

  EXPECT_THAT(read_file(folder_ / "environment"), ::testing::Not(HasSubstr("HOLDFAST_SECRET")));
  // ls itself opens /proc/self/fd; its standard output is the file.
  EXPECT_EQ(read_file(folder_ / "descriptors"), "0 1 2 3 4 ");
}

TEST_F(Impostor, ThatIsNotThereIsNamed) {
  set_hdf5_reader_path(folder_ / "none");

  const testing::Thrown thrown = thrown_by_reading();

  EXPECT_EQ(thrown.code, ErrorCode::unavailable);
  EXPECT_THAT(thrown.sentence, HasSubstr(folder_ / "none"));
}

TEST(ReaderProcess, ServesSeveralThreadsAtOnce) {
  const Hdf5Tree tree = testing::every_kind_of_content();
  const std::vector<std::byte> file = compose_hdf5_tree("a.h5", tree);
  std::vector<int> results(8);
  std::vector<std::thread> threads;
  for (int& result : results) {
    threads.emplace_back([&] {
      for (int i = 0; i < 5; ++i) result += testing::are_equal(read_hdf5_tree(file, "a.h5"), tree) ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();

  EXPECT_EQ(results, std::vector<int>(8, 5));
}

// An application may have asked the system to reap its children.
TEST(ReaderProcess, WorksWhereChildrenAreReapedByTheSystem) {
  const auto previous = std::signal(SIGCHLD, SIG_IGN);
  const Hdf5Tree tree = testing::every_kind_of_content();

  const Hdf5Tree read = read_hdf5_tree(compose_hdf5_tree("a.h5", tree), "a.h5");
  std::signal(SIGCHLD, previous);

  EXPECT_TRUE(testing::are_equal(read, tree));
}

}  // namespace
}  // namespace holdfast::format
