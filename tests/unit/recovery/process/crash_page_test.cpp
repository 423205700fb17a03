// The watchdog's reader of the page must accept arbitrary bytes, since a crashed program may have written them.

#include "process/crash_page.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "detect/life_page.h"

namespace holdfast::recovery {
namespace {

constexpr int kPid = 42;

class CrashPageTest : public testing::Test {
 protected:
  void write(std::uint32_t count) {
    page_.pid = kPid;
    page_.signal = 11;
    page_.count = count;
    page_.state = CrashPage::State::written;
  }

  SharedMemory memory_ = SharedMemory::create("life", LifePage::kBytes + CrashPage::kBytes);
  CrashPage& page_ = CrashPage::find(memory_);
};

}  // namespace

TEST_F(CrashPageTest, IsEmptyUntilAllIsWritten) {
  EXPECT_FALSE(CrashPage::read(memory_, kPid).has_value());
  write(1);
  page_.state = CrashPage::State::begun;
  EXPECT_FALSE(CrashPage::read(memory_, kPid).has_value());
}

TEST_F(CrashPageTest, ReturnsWhatWasWritten) {
  write(1);
  page_.frames[0] = {.address = 7, .file_offset = 8, .path = {'/', 'a'}};

  const std::optional<Crash> crash = CrashPage::read(memory_, kPid);

  ASSERT_TRUE(crash.has_value());
  EXPECT_EQ(crash->signal, 11);
  ASSERT_EQ(crash->frames.size(), 1U);
  EXPECT_EQ(crash->frames[0].address, 7U);
  EXPECT_EQ(crash->frames[0].file_offset, 8U);
  EXPECT_EQ(crash->frames[0].path, "/a");
}

TEST_F(CrashPageTest, IgnoresAnotherProcessAndAWrongCount) {
  write(1);
  EXPECT_FALSE(CrashPage::read(memory_, kPid + 1).has_value());
  for (const std::uint32_t count : {std::uint32_t{0}, std::uint32_t{CrashPage::kMostFrames + 1}, ~std::uint32_t{0}}) {
    write(count);
    EXPECT_FALSE(CrashPage::read(memory_, kPid).has_value()) << count;
  }
}

TEST_F(CrashPageTest, IgnoresAPathWithoutAnEnd) {
  write(1);
  page_.frames[0].path.fill('x');

  const std::optional<Crash> crash = CrashPage::read(memory_, kPid);

  ASSERT_TRUE(crash.has_value());
  EXPECT_EQ(crash->frames[0].path, "");
}

// A program that writes to wrong addresses may write here.
TEST_F(CrashPageTest, ReadsArbitraryBytesSafely) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 1000; ++i) {
    for (std::byte& byte : memory_.writable().subspan(LifePage::kBytes)) byte = static_cast<std::byte>(random());
    if (i % 2 == 0) write(static_cast<std::uint32_t>(random() % (CrashPage::kMostFrames + 2)));

    const std::optional<Crash> crash = CrashPage::read(memory_, kPid);

    EXPECT_LE(crash.value_or(Crash{}).frames.size(), CrashPage::kMostFrames);
  }
}

}  // namespace holdfast::recovery
