#include "progress.h"

#include <gtest/gtest.h>

#include <sstream>

namespace holdfast::cli {
namespace {

using std::chrono::milliseconds;

class ProgressTest : public ::testing::Test {
 protected:
  Progress make(bool has_terminal = true) {
    console_.has_terminal = has_terminal;
    return Progress(console_, "reading a.h5", [this] { return now_; });
  }

  Progress::Clock::time_point now_{};
  std::ostringstream out_;
  std::ostringstream problems_;
  Console console_{.out = out_, .problems = problems_};
};

TEST_F(ProgressTest, IsSilentDuringShortWork) {
  {
    Progress progress = make();
    progress.show(1, 10);
    now_ += milliseconds(499);
    progress.show(9, 10);
  }

  EXPECT_EQ(problems_.str(), "");
}

TEST_F(ProgressTest, RewritesOneLineAndClearsIt) {
  {
    Progress progress = make();
    now_ += milliseconds(500);
    progress.show(1, 4);
    progress.show(2, 4);
    now_ += milliseconds(100);
    progress.show(3, 4);
  }

  EXPECT_EQ(problems_.str(), "\r\x1b[Kreading a.h5  25 %\r\x1b[Kreading a.h5  75 %\r\x1b[K");
  EXPECT_EQ(out_.str(), "");
}

TEST_F(ProgressTest, IsSilentWithoutATerminal) {
  {
    Progress progress = make(false);
    now_ += milliseconds(5000);
    progress.show(1, 2);
  }

  EXPECT_EQ(problems_.str(), "");
}

TEST_F(ProgressTest, IsSilentForWorkOfSizeZero) {
  {
    Progress progress = make();
    now_ += milliseconds(5000);
    progress.show(0, 0);
  }

  EXPECT_EQ(problems_.str(), "");
}

}  // namespace
}  // namespace holdfast::cli
