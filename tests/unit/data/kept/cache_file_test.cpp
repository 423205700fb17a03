// What a cache file asks of the file system. Damage, crashes and other contents: cached_samples_test.cpp.

#include "data/kept/cache_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "holdfast/base/file_system.h"
#include "holdfast/base/watched_file_system.h"
#include "support/temporary_folder.h"

namespace holdfast {
namespace {

using testing::Contains;
using testing::Not;

class CacheFileOperations : public testing::Test {
 protected:
  // Four samples of eight bytes, all of them the number of the sample.
  CacheFile file() {
    return {*watched_,
            folder_ / "cache",
            {.text = "numbers", .samples = 4, .sample_bytes = 8},
            [](std::int64_t sample, std::span<std::byte> bytes) {
              for (std::byte& byte : bytes) byte = static_cast<std::byte>(sample);
            }};
  }

  TemporaryFolder folder_;
  std::vector<std::string> names_;
  std::unique_ptr<FileSystem> watched_ = watched_file_system(
      posix_file_system(), [this](const FileOperation& operation) { names_.emplace_back(operation.name); });
};

TEST_F(CacheFileOperations, TellTheSystemThatRunsFollowEachOther) {
  const CacheFile cache = file();
  names_.clear();
  std::vector<std::byte> features(12), targets(4);

  cache.read_run(1, features, targets);

  EXPECT_EQ(names_.front(), "read_in_order");
  EXPECT_EQ(features, std::vector<std::byte>({std::byte{1}, std::byte{1}, std::byte{1}, std::byte{1}, std::byte{1},
                                              std::byte{1}, std::byte{2}, std::byte{2}, std::byte{2}, std::byte{2},
                                              std::byte{2}, std::byte{2}}));
  EXPECT_EQ(targets, std::vector<std::byte>({std::byte{1}, std::byte{1}, std::byte{2}, std::byte{2}}));
}

TEST_F(CacheFileOperations, SayNothingOfAnOrderForSingleSamples) {
  const CacheFile cache = file();
  names_.clear();
  std::vector<std::byte> features(8);

  cache.read(3, features, {});

  EXPECT_THAT(names_, Not(Contains("read_in_order")));
  EXPECT_EQ(features, std::vector<std::byte>(8, std::byte{3}));
}

}  // namespace
}  // namespace holdfast
