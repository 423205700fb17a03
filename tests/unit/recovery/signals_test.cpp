#include "signals.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace holdfast::recovery {
namespace {

class BrokenPipe : public testing::Test {
 protected:
  BrokenPipe() {
    if (::pipe(ends_) == 0) ::close(ends_[0]);
  }
  ~BrokenPipe() override {
    ::close(ends_[1]);
    ::signal(SIGPIPE, before_);
  }

  // The error number; 0: written.
  int write_to_it() const { return ::write(ends_[1], "x", 1) == 1 ? 0 : errno; }

 private:
  using Handler = void (*)(int);

  const Handler before_ = ::signal(SIGPIPE, SIG_DFL);
  int ends_[2] = {-1, -1};
};

TEST_F(BrokenPipe, EndsNoProcessThatOutlivesThem) {
  outlive_broken_pipes();

  EXPECT_EQ(write_to_it(), EPIPE);
}

TEST_F(BrokenPipe, GoesToTheHandlerThatIsThere) {
  static volatile std::sig_atomic_t handled = 0;
  ::signal(SIGPIPE, [](int) { handled = 1; });

  outlive_broken_pipes();

  EXPECT_EQ(write_to_it(), EPIPE);
  EXPECT_EQ(handled, 1);
}

TEST_F(BrokenPipe, StaysIgnored) {
  ::signal(SIGPIPE, SIG_IGN);

  outlive_broken_pipes();

  EXPECT_TRUE(is_ignored(SIGPIPE));
}

}  // namespace
}  // namespace holdfast::recovery
