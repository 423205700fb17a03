#include "holdfast/base/error.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <set>
#include <string>

namespace holdfast {
namespace {

TEST(Error, CarriesItsCodeAndSentence) {
  const Error error(ErrorCode::incompatible, "seed 7 was 6 at the first start");

  EXPECT_EQ(error.code(), ErrorCode::incompatible);
  EXPECT_STREQ(error.what(), "seed 7 was 6 at the first start");
}

TEST(ErrorCode, HasANameOfItsOwnForEveryCode) {
  std::set<std::string_view> names;
  for (int code = 0; code <= static_cast<int>(ErrorCode::unsupported); ++code) {
    names.insert(to_string(static_cast<ErrorCode>(code)));
  }

  EXPECT_EQ(names.size(), static_cast<std::size_t>(ErrorCode::unsupported) + 1);
  EXPECT_FALSE(names.contains("unknown"));
  EXPECT_EQ(to_string(ErrorCode::disk_full), "disk_full");
}

TEST(SystemError, DistinguishesAFullDiskFromOtherFailures) {
  EXPECT_EQ(system_error(ENOSPC, "x").code(), ErrorCode::disk_full);
  EXPECT_EQ(system_error(EDQUOT, "x").code(), ErrorCode::disk_full);
  EXPECT_EQ(system_error(ENOENT, "x").code(), ErrorCode::not_found);
  EXPECT_EQ(system_error(ENOMEM, "x").code(), ErrorCode::out_of_memory);
  EXPECT_EQ(system_error(EIO, "x").code(), ErrorCode::input_output);
}

TEST(SystemError, DistinguishesLastingRefusalsFromErrorsThatMayPass) {
  for (const int error_number : {EACCES, EPERM, EROFS, ENOTDIR, EISDIR, EFBIG}) {
    EXPECT_EQ(system_error(error_number, "x").code(), ErrorCode::refused) << error_number;
  }
  for (const int error_number : {EIO, EAGAIN, ESTALE, ETIMEDOUT}) {
    EXPECT_EQ(system_error(error_number, "x").code(), ErrorCode::input_output) << error_number;
  }
}

TEST(SystemError, SaysWhichLimitOfTheProcessToRaise) {
  EXPECT_NE(std::string(system_error(EMFILE, "x").what()).find("ulimit -n"), std::string::npos);
  EXPECT_NE(std::string(system_error(EFBIG, "x").what()).find("ulimit -f"), std::string::npos);
}

TEST(SystemError, AppendsTheSystemsMessage) {
  EXPECT_STREQ(system_error(ENOSPC, "cannot write a.h5").what(), "cannot write a.h5: No space left on device");
}

TEST(AssertionDeathTest, NamesTheBrokenPromiseAndAborts) {
  EXPECT_DEATH(HOLDFAST_ASSERT(1 + 1 == 3), "broken promise: 1 \\+ 1 == 3 .*error_test.cpp");
}

TEST(Assertion, LetsAKeptPromisePass) {
  HOLDFAST_ASSERT(1 + 1 == 2);
}

}  // namespace
}  // namespace holdfast
