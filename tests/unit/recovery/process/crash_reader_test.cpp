// The reader with addresses of this program and of files that have changed. It never blocks its caller.

#include "process/crash_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <ctime>
#include <filesystem>

#include "support/comes_true.h"
#include "support/program.h"

namespace holdfast::recovery {
namespace {

using testing::ElementsAre;

constexpr std::chrono::seconds kTimeToName(20);

CrashStory story_of(std::vector<CrashFrame> frames) {
  return {.member = 3,
          .rank = 1,
          .pid = 42,
          .started = std::time(nullptr),
          .crash = {.signal = 11, .frames = std::move(frames)}};
}

}  // namespace

TEST(CrashReader, ShowsAddressesThatHaveNoName) {
  const Crash crash{.signal = 11,
                    .frames = {{.address = 0x10},
                               {.address = 0x20, .file_offset = 0x1234, .path = "/no/such/library.so"},
                               {.address = 0x30, .file_offset = 0x40, .path = "[vdso]"}}};

  EXPECT_THAT(describe_frames(crash, std::time(nullptr), Deadline::after(kTimeToName)),
              ElementsAre("0x10 (in no file)", "(/no/such/library.so+0x1234)", "([vdso]+0x40)"));
}

// The name would be that of another program's function.
TEST(CrashReader, NamesNoFunctionsOfAFileThatWasChangedSince) {
  const TemporaryFolder folder;
  std::filesystem::copy_file("/proc/self/exe", folder / "program");
  std::vector<CrashFrame> frames;
  for (std::uint64_t offset = 0; offset < 40; ++offset) {
    frames.push_back({.address = 1, .file_offset = offset * 4096, .path = folder / "program"});
  }

  for (const std::string& line : describe_frames({.signal = 11, .frames = frames}, 0, Deadline::after(kTimeToName))) {
    EXPECT_THAT(line, testing::StartsWith("(/")) << line;
  }
}

TEST(CrashReader, ReturnsStoriesThatAreReady) {
  CrashReader reader;

  reader.add(story_of({{.address = 0x10}}));

  std::vector<CrashStory> stories;
  EXPECT_TRUE(comes_true([&] {
    for (CrashStory& story : reader.take()) stories.push_back(std::move(story));
    return !stories.empty();
  }));
  ASSERT_EQ(stories.size(), 1U);
  EXPECT_EQ(stories[0].member, 3);
  EXPECT_THAT(stories[0].frames, ElementsAre("0x10 (in no file)"));
  EXPECT_TRUE(reader.take().empty());
}

TEST(CrashReader, ReturnsAllStoriesAtTheEnd) {
  CrashReader reader;
  for (int i = 0; i < 20; ++i) reader.add(story_of({{.address = 0x10}}));

  const std::vector<CrashStory> stories = reader.take_all(Deadline::after(kTimeToName));

  EXPECT_EQ(stories.size(), 20U);
  for (const CrashStory& story : stories) EXPECT_THAT(story.frames, ElementsAre("0x10 (in no file)"));
}

TEST(CrashReader, ReturnsStoriesWithoutNamesWhenThereIsNoTime) {
  CrashReader reader;
  for (int i = 0; i < 20; ++i) reader.add(story_of({{.address = 0x10}}));

  EXPECT_EQ(reader.take_all(Deadline::after({})).size(), 20U);
}

}  // namespace holdfast::recovery
