#include "train/fit/limited_trial.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "holdfast/base/deadline.h"
#include "holdfast/base/error.h"
#include "support/sanitizer.h"
#include "support/thrown.h"

namespace holdfast {
namespace {

constexpr std::uint64_t kMebibyte = std::uint64_t{1} << 20;
constexpr std::chrono::seconds kTrialTime(60);

void touch(std::uint64_t bytes) {
  std::vector<char> memory(bytes, 1);
  if (memory[bytes / 2] != 1) std::abort();
}

class LimitedTrial : public testing::Test {
 protected:
  void SetUp() override {
    if (runs_under_a_sanitizer()) GTEST_SKIP() << "sanitizers reserve more address space than a limit allows";
  }
};

}  // namespace

TEST_F(LimitedTrial, SaysHowMuchItsChildTook) {
  const auto bytes = run_in_limited_child(200 * kMebibyte, kTrialTime, [] { touch(50 * kMebibyte); });

  ASSERT_TRUE(bytes);
  EXPECT_GE(*bytes, 50 * kMebibyte);
  EXPECT_LE(*bytes, 200 * kMebibyte);
}

TEST_F(LimitedTrial, SaysThatItsChildDidNotGetEnough) {
  EXPECT_FALSE(run_in_limited_child(100 * kMebibyte, kTrialTime, [] { touch(150 * kMebibyte); }));
  EXPECT_FALSE(run_in_limited_child(100 * kMebibyte, kTrialTime, [] { std::abort(); }));
  EXPECT_FALSE(run_in_limited_child(100 * kMebibyte, kTrialTime,
                                    [] { throw Error(ErrorCode::out_of_memory, "a device has no more"); }));
}

TEST_F(LimitedTrial, PassesAnErrorOnAsItWas) {
  try {
    run_in_limited_child(100 * kMebibyte, kTrialTime,
                         [] { throw Error(ErrorCode::invalid_file, "sample 7 is broken"); });
    ADD_FAILURE() << "the error of the child was lost";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_file);
    EXPECT_STREQ(error.what(), "sample 7 is broken");
  }
}

// The last character was cut in two.
TEST_F(LimitedTrial, CutsALongErrorBetweenCharacters) {
  std::string text;
  for (int i = 0; i < 2500; ++i) text += "\xC3\xA9";

  const std::string sentence = sentence_thrown_by(
      [&] { run_in_limited_child(100 * kMebibyte, kTrialTime, [&] { throw Error(ErrorCode::invalid_file, text); }); });

  EXPECT_EQ(sentence, text.substr(0, 3998));
}

// A file that cannot be read was taken for a thread without memory, and the batch became smaller without a word.
TEST_F(LimitedTrial, TakesAnErrorOfAFileForWhatItIs) {
  try {
    run_in_limited_child(100 * kMebibyte, kTrialTime,
                         [] { static_cast<void>(std::filesystem::file_size("/none/there")); });
    ADD_FAILURE() << "the error of the child was lost";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::input_output);
    EXPECT_NE(std::string(error.what()).find("/none/there"), std::string::npos) << error.what();
  }
  EXPECT_FALSE(run_in_limited_child(100 * kMebibyte, kTrialTime, [] {
    throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again), "a thread");
  }));
}

TEST_F(LimitedTrial, EndsAChildThatTakesTooLong) {
  const auto work_on = [] {
    const Deadline end = Deadline::after(kTrialTime);
    while (!end.has_passed()) {
    }
  };
  try {
    run_in_limited_child(100 * kMebibyte, std::chrono::milliseconds(50), work_on);
    ADD_FAILURE() << "the child was not ended";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::deadline_exceeded);
  }
}

TEST_F(LimitedTrial, ChangesNothingInThisProcess) {
  int value = 1;

  EXPECT_TRUE(run_in_limited_child(100 * kMebibyte, kTrialTime, [&] { value = 2; }));

  EXPECT_EQ(value, 1);
  touch(150 * kMebibyte);
}

}  // namespace holdfast
