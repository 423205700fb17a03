// Bad input ends the program with one clear sentence and an exit code other than 0, and loses nothing.

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "resilience/digits_run.h"

namespace holdfast {
namespace {

namespace fs = std::filesystem;

std::string big_endian(std::uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
          static_cast<char>(value)};
}

struct IdxFiles {
  explicit IdxFiles(const TemporaryFolder& folder) : images(folder / "images"), labels(folder / "labels") {
    constexpr std::uint32_t kCount = 200;
    image_bytes =
        big_endian(0x803) + big_endian(kCount) + big_endian(28) + big_endian(28) + std::string(kCount * 784, '\x40');
    label_bytes = big_endian(0x801) + big_endian(kCount) + std::string(kCount, '\x03');
  }
  void write() const {
    std::ofstream(images, std::ios::binary) << image_bytes;
    std::ofstream(labels, std::ios::binary) << label_bytes;
  }

  std::string images, labels;
  std::string image_bytes, label_bytes;
};

ProgramResult train_on(const IdxFiles& files, const TemporaryFolder& folder) {
  return run_program(built_program("digits"), {"--images", files.images, "--labels", files.labels, "--replicas", "2",
                                               "--epochs", "1", "--holdout", "20", "--run-dir", folder / "run"});
}

int count_lines_with(const std::string& text, const std::string& part) {
  int count = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) count += line.find(part) != std::string::npos ? 1 : 0;
  return count;
}

// Expects that the program failed and reported it once, in a line that contains `part`.
void expect_refusal(const ProgramResult& result, const std::string& part) {
  EXPECT_FALSE(result.timed_out);
  EXPECT_NE(result.exit_code, 0);
  EXPECT_LT(result.exit_code, 128) << "a signal ended it: " << result.output;
  EXPECT_NE(result.output.find(part), std::string::npos) << result.output;
  EXPECT_EQ(count_lines_with(result.output, "error"), 1) << result.output;
}

std::vector<fs::path> savepoints(const std::string& folder) {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".h5") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

// A run that was killed half way, with its watchdog.
void leave_unfinished(const TemporaryFolder& folder) {
  const ProgramResult killed =
      run_program(built_program("digits"),
                  digits_arguments({.replicas = 2, .faults = {"rank=1,step=14,fault=kill-watchdog"}}, folder));
  ASSERT_EQ(killed.exit_code, 128 + SIGKILL) << killed.output;
}

}  // namespace

// --seed -1 became 18446744073709551615 and nan became -9223372036854775808 ms. The others ended with the exit codes of
// the library that reads options, or after three starts.
TEST(BadInput, NumbersOutOfRangeAreRefusedByName) {
  const TemporaryFolder folder;
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"--seed", "-1"},          {"--seed", "18446744073709551616"}, {"--hang-after", "nan"},
      {"--hang-after", "1e300"}, {"--start-timeout", "-1"},          {"--spares", "1000"},
      {"--epochs", "0"},         {"--max-restarts", "99999999999"},  {"--drawn", "1099511627776"},
      {"--replicas", "100000"}};
  for (const auto& [option, value] : wrong) {
    const ProgramResult result = run_program(built_program("digits"), {option, value, "--run-dir", folder / "run"});

    EXPECT_EQ(result.exit_code, 1) << option << " " << value << ": " << result.output;
    EXPECT_NE(result.output.find(option + ": " + value), std::string::npos) << result.output;
    EXPECT_FALSE(fs::exists(folder / "run")) << option << " " << value;
  }
}

// The missing folder was noticed only after the training.
TEST(BadInput, AReportThatCannotBeWrittenIsRefusedBeforeTheFirstStep) {
  const TemporaryFolder folder;

  const ProgramResult result =
      run_program(built_program("digits"), {"--report", folder / "nowhere/report.json", "--run-dir", folder / "run"});

  EXPECT_EQ(result.exit_code, 1) << result.output;
  EXPECT_NE(result.output.find("report.json cannot be written: there is no folder"), std::string::npos)
      << result.output;
  EXPECT_FALSE(fs::exists(folder / "run"));
}

TEST(BadInput, MissingFileIsNamed) {
  const TemporaryFolder folder;
  const IdxFiles files(folder);

  expect_refusal(train_on(files, folder), files.images);
}

TEST(BadInput, TruncatedFileIsNamedWithItsSizes) {
  const TemporaryFolder folder;
  IdxFiles files(folder);
  files.image_bytes.resize(1000);
  files.write();

  expect_refusal(train_on(files, folder), files.images);
}

TEST(BadInput, WrongMagicIsNamed) {
  const TemporaryFolder folder;
  IdxFiles files(folder);
  files.image_bytes[2] = '\x0b';
  files.write();

  expect_refusal(train_on(files, folder), files.images);
}

TEST(BadInput, LabelOutOfRangeIsNamed) {
  const TemporaryFolder folder;
  IdxFiles files(folder);
  files.label_bytes[8 + 17] = '\x0a';
  files.write();

  expect_refusal(train_on(files, folder), "10");
}

TEST(BadInput, RunDirectoryThatCannotBeWrittenIsNamed) {
  expect_refusal(run_program(built_program("digits"), {"--drawn", "100", "--holdout", "10", "--run-dir", "/proc/run"}),
                 "/proc/run");
}

// A std::filesystem_error ended the process with the text of the library.
TEST(BadInput, RunDirectoryThatCannotBeReachedIsNamed) {
  const TemporaryFolder folder;
  fs::create_directory_symlink(folder / "loop", folder / "loop");
  const std::string long_name(300, 'x');

  for (const auto& [directory, said] : {std::pair<std::string, std::string>{"", "run_directory is empty"},
                                        {folder / long_name, long_name},
                                        {folder / "loop/run", folder / "loop/run"}}) {
    const ProgramResult result =
        run_program(built_program("digits"), {"--drawn", "100", "--holdout", "10", "--run-dir", directory});
    expect_refusal(result, said);
    EXPECT_EQ(result.output.find("filesystem"), std::string::npos) << result.output;
    const ProgramResult under_run =
        run_program(built_program("holdfast"), {"run", "--run-dir", directory, "--", "true"});
    EXPECT_NE(under_run.exit_code, 0);
    EXPECT_NE(under_run.output.find(said), std::string::npos) << under_run.output;
    EXPECT_EQ(under_run.output.find("filesystem"), std::string::npos) << under_run.output;
  }
}

TEST(BadInput, MoreReplicasThanShardsAreRefused) {
  const TemporaryFolder folder;

  expect_refusal(
      run_program(built_program("digits"), {"--replicas", "3", "--shards", "2", "--run-dir", folder / "run"}),
      "3 replicas for 2 shards");
}

TEST(BadInput, UnknownOptionIsNamed) {
  const ProgramResult result = run_program(built_program("digits"), {"--replicass", "3"});

  EXPECT_NE(result.exit_code, 0);
  EXPECT_NE(result.output.find("--replicass"), std::string::npos) << result.output;
}

TEST(BadInput, UnknownFaultAndMissingDeviceAreRefused) {
  const TemporaryFolder folder;

  expect_refusal(
      run_program(built_program("digits"), {"--inject", "rank=0,step=1,fault=tickle", "--run-dir", folder / "run"}),
      "tickle");
  expect_refusal(run_program(built_program("digits"), {"--device", "cuda", "--run-dir", folder / "run"}), "CUDA");
}

TEST(BadInput, OptionsThatWouldChangeTheBitsOfAResumedRunAreRefusedByName) {
  const TemporaryFolder folder;
  leave_unfinished(folder);

  struct Change {
    std::string option, value, named;
  };
  const std::vector<Change> changes = {{"--seed", "12", "seed"},    {"--shards", "8", "shards"},
                                       {"--batch", "50", "batch"},  {"--learning-rate", "0.1", "learning_rate"},
                                       {"--epochs", "1", "epochs"}, {"--holdout", "60", "data"}};
  for (const Change& change : changes) {
    SCOPED_TRACE(change.option);
    const DigitsRun changed{.replicas = 2, .options = {{change.option, change.value}}};
    expect_refusal(run_program(built_program("digits"), digits_arguments(changed, folder)), change.named);
  }

  const ProgramResult resumed = run_program(built_program("digits"), digits_arguments({.replicas = 2}, folder));
  ASSERT_EQ(resumed.exit_code, 0) << resumed.output;
  EXPECT_EQ(report_of(folder).at("weights_digest"), undisturbed_digest());
}

TEST(BadInput, SavepointOfAnotherModelIsRefusedAndKept) {
  const TemporaryFolder folder;
  const TemporaryFolder other;
  ASSERT_EQ(run_program(built_program("custom_trainable"), {"--run-dir", other / "run"}).exit_code, 0);
  leave_unfinished(folder);
  const fs::path foreign = savepoints(other / "run").back();
  const fs::path place = fs::path(folder / "run") / "savepoint-0000009999.h5";
  fs::copy_file(foreign, place);

  expect_refusal(run_program(built_program("digits"), digits_arguments({.replicas = 2}, folder)), place.string());

  EXPECT_EQ(read_file(place), read_file(foreign));
}

TEST(BadInput, TruncatedSavepointIsReportedByVerify) {
  const TemporaryFolder folder;
  leave_unfinished(folder);
  const fs::path newest = savepoints(folder / "run").back();
  ASSERT_EQ(run_program(built_program("holdfast"), {"verify", folder / "run"}).exit_code, 0);
  ASSERT_EQ(run_program(built_program("holdfast"), {"inspect", newest}).exit_code, 0);
  fs::resize_file(newest, fs::file_size(newest) - 100);

  const ProgramResult verified = run_program(built_program("holdfast"), {"verify", folder / "run"});
  const ProgramResult inspected = run_program(built_program("holdfast"), {"inspect", newest});

  EXPECT_EQ(verified.exit_code, 1);
  EXPECT_NE(verified.output.find(newest.filename()), std::string::npos) << verified.output;
  EXPECT_NE(inspected.exit_code, 0);
  EXPECT_LT(inspected.exit_code, 128);
}

// The file system has no room for a second savepoint. Training continues to its end, where a savepoint is required.
TEST(BadInput, FullDiskCostsSavepointsAndEndsTheRunOnlyWithTheLast) {
  const TemporaryFolder folder;
  if (::mount("tmpfs", folder.path().c_str(), "tmpfs", 0, "size=1200k") != 0) {
    GTEST_SKIP() << "mounting a small tmpfs needs root";
  }
  const std::vector<std::string> arguments = digits_arguments({.replicas = 2}, folder);

  const ProgramResult full = run_program(built_program("digits"), arguments);

  EXPECT_EQ(full.exit_code, 1) << full.output;
  EXPECT_GE(count_lines_with(full.output, "training goes on with the earlier ones"), 2) << full.output;
  EXPECT_NE(full.output.find("step 27"), std::string::npos) << full.output;
  const std::vector<fs::path> left = savepoints(folder / "run");
  EXPECT_GE(left.size(), 1U);
  EXPECT_EQ(run_program(built_program("holdfast"), {"verify", folder / "run"}).exit_code, 0);

  // With more room, the run continues where it was.
  ASSERT_EQ(::mount("tmpfs", folder.path().c_str(), "tmpfs", MS_REMOUNT, "size=100m"), 0);
  const ProgramResult resumed = run_program(built_program("digits"), arguments);
  EXPECT_EQ(resumed.exit_code, 0) << resumed.output;
  EXPECT_EQ(report_of(folder).at("weights_digest"), undisturbed_digest());
  ::umount(folder.path().c_str());
}

}  // namespace holdfast
