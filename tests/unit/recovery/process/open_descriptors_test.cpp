// Each test runs in a process of its own, because it closes that process's descriptors.

#include "process/open_descriptors.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>

namespace holdfast::recovery {
namespace {

// From here on close_range(2) fails in this process as on a kernel before 5.9.
void do_without_close_range() {
  std::array<sock_filter, 4> program{
      sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_close_range, 0, 1),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{.len = program.size(), .filter = program.data()};
  const bool is_set =
      ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) == 0;
  if (!is_set || ::close_range(1000, 1001, 0) == 0 || errno != ENOSYS) std::_Exit(77);
}

bool is_open_descriptor(int descriptor) {
  return ::fcntl(descriptor, F_GETFD) >= 0;
}

bool closes_on_exec(int descriptor) {
  return (::fcntl(descriptor, F_GETFD) & FD_CLOEXEC) != 0;
}

// Runs in a process of its own, which exits with 0 on success.
[[noreturn]] void close_most_and_leave() {
  const int first = ::dup(0);
  for (int i = 0; i < 200; ++i) static_cast<void>(::dup(0));
  const std::array<int, 2> kept{first + 5, first + 100};
  close_all_but(first, kept);
  bool is_right = is_open_descriptor(first - 1);
  for (int descriptor = first; descriptor < first + 201; ++descriptor) {
    const bool is_kept = descriptor == kept[0] || descriptor == kept[1];
    is_right = is_right && is_open_descriptor(descriptor) == is_kept;
  }
  std::_Exit(is_right ? 0 : 1);
}

[[noreturn]] void mark_and_leave() {
  const int first = ::dup(0);
  for (int i = 0; i < 200; ++i) static_cast<void>(::dup(0));
  close_on_exec_from(first + 1);
  bool is_right = !closes_on_exec(first);
  for (int descriptor = first + 1; descriptor < first + 201; ++descriptor) {
    is_right = is_right && is_open_descriptor(descriptor) && closes_on_exec(descriptor);
  }
  std::_Exit(is_right ? 0 : 1);
}

TEST(OpenDescriptorsDeathTest, AreClosedExceptThoseThatAreKept) {
  EXPECT_EXIT(close_most_and_leave(), testing::ExitedWithCode(0), "");
}

TEST(OpenDescriptorsDeathTest, CloseOnExec) {
  EXPECT_EXIT(mark_and_leave(), testing::ExitedWithCode(0), "");
}

// The sweeping process kept the watchdog's end of its socket open, so each run ended ten seconds late.
TEST(OpenDescriptorsDeathTest, AreClosedOnKernelsWithoutCloseRange) {
  EXPECT_EXIT((do_without_close_range(), close_most_and_leave()), testing::ExitedWithCode(0), "");
}

TEST(OpenDescriptorsDeathTest, CloseOnExecOnKernelsWithoutCloseRange) {
  EXPECT_EXIT((do_without_close_range(), mark_and_leave()), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace holdfast::recovery
