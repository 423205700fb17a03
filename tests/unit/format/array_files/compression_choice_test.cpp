// The measurement with a disk and a clock of the test, so that each save takes exactly as long as it should.

#include "holdfast/format/compression_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>

#include "holdfast/base/temporary_files.h"
#include "support/disks/memory_file_system.h"
#include "unit/format/support/array_files.h"

namespace holdfast::format {
namespace {

using testing::make_array;
using namespace std::chrono_literals;

// Numbers like weights: random signs and mantissas, few exponents.
testing::Array weights(const std::string& name, std::uint64_t count) {
  testing::Array array = make_array(name, DType::f32, {count});
  for (std::size_t i = 3; i < array.bytes.size(); i += 4) array.bytes[i] = std::byte{0x3c};
  return array;
}

// A disk whose speed the test chooses, and a clock that advances with each write.
class Disk : public ::testing::Test {
 protected:
  Disk() { memory_.create_folders("/run"); }

  CompressionTrial measure(const std::vector<testing::Array>& arrays, TrialOptions options = {}) {
    options.now = [this] { return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(clock_.load())); };
    return measure_compression(*files_, "/run", views(arrays), options);
  }

  MemoryFileSystem memory_;
  std::atomic<std::int64_t> clock_{0};  // nanoseconds
  std::atomic<std::int64_t> nanoseconds_per_byte_{1};
  std::function<void(const FileOperation&)> when_operated_ = [](const FileOperation&) {};
  std::unique_ptr<FileSystem> files_ = watched_file_system(memory_, [this](const FileOperation& operation) {
    if (operation.name == "write") clock_ += nanoseconds_per_byte_ * static_cast<std::int64_t>(operation.bytes);
    when_operated_(operation);
  });
};

TEST_F(Disk, ThatIsSlowGetsCompressedFiles) {
  const CompressionTrial trial = measure({weights("a", 100'000)});

  EXPECT_LT(trial.fast_file_bytes, trial.none_file_bytes);
  EXPECT_LT(trial.fast_seconds, trial.none_seconds);
  EXPECT_EQ(choose(trial), Compression::fast);
}

// Each of the four saves takes the time that the test's clock gives it.
TEST_F(Disk, IsMeasuredInAnOrderInWhichADriftAffectsBothAlike) {
  nanoseconds_per_byte_ = 0;
  int saves = 0;
  when_operated_ = [&](const FileOperation& operation) {
    if (operation.name == "sync") clock_ += 1'000'000'000LL * ++saves;
  };

  const CompressionTrial trial = measure({weights("a", 100'000)});

  EXPECT_EQ(saves, 4);
  EXPECT_DOUBLE_EQ(trial.fast_seconds, 5);
  EXPECT_DOUBLE_EQ(trial.none_seconds, 5);
}

TEST_F(Disk, KeepsNoFilesOfTheTrial) {
  measure({weights("a", 100'000), weights("b/c", 10)});

  EXPECT_TRUE(memory_.list("/run").empty());
}

TEST_F(Disk, GetsEachArraysShareOfTheSample) {
  std::atomic<std::uint64_t> written = 0;
  when_operated_ = [&](const FileOperation& operation) {
    if (operation.name == "write") written += operation.bytes;
  };

  const CompressionTrial trial =
      measure({weights("a", 3'000'000), weights("b", 1'000'000), make_array("c", DType::boolean, {0})},
              {.sample_bytes = 1'600'000, .threads = 2});

  EXPECT_EQ(trial.sample_bytes, 1'600'000U);
  EXPECT_GE(trial.none_file_bytes, trial.sample_bytes);
  EXPECT_LT(written, 4 * (trial.sample_bytes + 100'000));
}

TEST_F(Disk, GetsAllOfASmallState) {
  EXPECT_EQ(measure({weights("a", 1000), make_array("b", DType::f64, {})}).sample_bytes, 4008U);
}

TEST_F(Disk, ThatIsFullKeepsNoFileOfTheTrial) {
  bool is_through = false;
  for (int failing = 1; !is_through; ++failing) {
    int writes = 0;
    when_operated_ = [&](const FileOperation& operation) {
      const bool takes_space = operation.name == "create" || operation.name == "write" || operation.name == "sync";
      if (takes_space && ++writes == failing) throw system_error(ENOSPC, "cannot write " + operation.path);
    };

    try {
      measure({weights("a", 50'000)}, {.threads = 1});
      is_through = true;
      EXPECT_GT(failing, 4 * 4) << "it did not write four files";
    } catch (const Error& failure) {
      EXPECT_EQ(failure.code(), ErrorCode::disk_full) << failure.what();
    }
    EXPECT_TRUE(memory_.list("/run").empty()) << "operation " << failing;
  }
}

TEST_F(Disk, ThatRefusesToDeleteIsCleanedAtTheNextStart) {
  when_operated_ = [](const FileOperation& operation) {
    if (operation.name == "remove") throw system_error(EIO, "cannot remove " + operation.path);
  };
  measure({weights("a", 10)});
  ASSERT_EQ(memory_.list("/run").size(), 4U);

  EXPECT_EQ(remove_temporary_files(memory_, "/run").size(), 4U);
}

TEST(CompressionChoice, TakesTheFasterAndOfEquallyFastOnesTheSmaller) {
  EXPECT_EQ(choose({.fast_seconds = 2, .none_seconds = 1}), Compression::none);
  EXPECT_EQ(choose({.fast_seconds = 1, .none_seconds = 2}), Compression::fast);
  EXPECT_EQ(choose({.fast_seconds = 1, .none_seconds = 1}), Compression::fast);
}

}  // namespace
}  // namespace holdfast::format
