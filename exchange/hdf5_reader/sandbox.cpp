// A seccomp filter that allows a handful of system calls, and resource limits for memory and processor time. HDF5's
// parser has memory-safety faults that a crafted file can reach. A fault may then waste memory and time within the
// limits, but cannot open, connect to or start anything. Reasons: docs/decisions/exchange.md.

#include "sandbox.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <vector>

namespace holdfast::hdf5_reader {
namespace {

// System calls have different numbers on each architecture, so the filter checks the architecture first.
#if defined(__x86_64__) && !defined(__ILP32__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__) && defined(__LP64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
constexpr std::uint32_t kArchitecture = 0;
#endif

// Calls that touch no file: allocating (the C library asks for the amount of memory before it sorts), ending, the
// clock (a real call on some kernels), and sleeping (HDF5 does that after a wrong checksum).
constexpr std::array kHarmless = {
    __NR_brk,          __NR_munmap,     __NR_mremap,         __NR_madvise,      __NR_sysinfo,
    __NR_futex,        __NR_exit_group, __NR_exit,           __NR_rt_sigreturn, __NR_clock_gettime,
    __NR_gettimeofday, __NR_nanosleep,  __NR_clock_nanosleep};

constexpr std::uint32_t kNumberOffset = offsetof(seccomp_data, nr);
constexpr std::uint32_t kArchitectureOffset = offsetof(seccomp_data, arch);

// The lower or upper 32 bits of an argument. A filter compares 32 bits at a time, and both architectures are
// little-endian.
constexpr std::uint32_t lower_half(unsigned argument) {
  return static_cast<std::uint32_t>(offsetof(seccomp_data, args) + argument * sizeof(std::uint64_t));
}
constexpr std::uint32_t upper_half(unsigned argument) {
  return lower_half(argument) + std::uint32_t{sizeof(std::uint32_t)};
}

// A program for the kernel's filter machine. Every block starts with the call's number loaded. A block that loads
// anything else ends with an answer, and other calls skip it completely.
class CallFilter {
 public:
  CallFilter() {
    load(kArchitectureOffset);
    unless_equal(kArchitecture, SECCOMP_RET_KILL_PROCESS);
    load(kNumberOffset);
  }

  void allow(std::uint32_t call) {
    skip_unless_equal(call, 1);
    answer(SECCOMP_RET_ALLOW);
  }

  // Allows the call if the argument is exactly `value`.
  void allow_with_argument(std::uint32_t call, unsigned argument, std::uint32_t value) {
    skip_unless_equal(call, 6);
    load(upper_half(argument));
    skip_unless_equal(0, 3);
    load(lower_half(argument));
    skip_unless_equal(value, 1);
    answer(SECCOMP_RET_ALLOW);
    answer(SECCOMP_RET_KILL_PROCESS);
  }

  // Allows the call if the lower half of the argument has none of the bits.
  void allow_without_bits(std::uint32_t call, unsigned argument, std::uint32_t bits) {
    skip_unless_equal(call, 4);
    load(lower_half(argument));
    skip_if_any(bits, 1);
    answer(SECCOMP_RET_ALLOW);
    answer(SECCOMP_RET_KILL_PROCESS);
  }

  // Allows the call if the mapping is anonymous (argument 3) and not executable (argument 2).
  void allow_anonymous_mapping(std::uint32_t call) {
    skip_unless_equal(call, 6);
    load(lower_half(2));
    skip_if_any(PROT_EXEC, 3);
    load(lower_half(3));
    skip_unless_any(MAP_ANONYMOUS, 1);
    answer(SECCOMP_RET_ALLOW);
    answer(SECCOMP_RET_KILL_PROCESS);
  }

  bool install() {
    answer(SECCOMP_RET_KILL_PROCESS);
    const sock_fprog program{.len = static_cast<unsigned short>(program_.size()), .filter = program_.data()};
    return ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
  }

 private:
  void append(unsigned code, std::uint32_t value, unsigned if_true, unsigned if_false) {
    program_.push_back({.code = static_cast<std::uint16_t>(code),
                        .jt = static_cast<std::uint8_t>(if_true),
                        .jf = static_cast<std::uint8_t>(if_false),
                        .k = value});
  }
  void load(std::uint32_t offset) { append(BPF_LD | BPF_W | BPF_ABS, offset, 0, 0); }
  void answer(std::uint32_t action) { append(BPF_RET | BPF_K, action, 0, 0); }
  void skip_unless_equal(std::uint32_t value, unsigned instructions) {
    append(BPF_JMP | BPF_JEQ | BPF_K, value, 0, instructions);
  }
  void skip_if_any(std::uint32_t bits, unsigned instructions) {
    append(BPF_JMP | BPF_JSET | BPF_K, bits, instructions, 0);
  }
  void skip_unless_any(std::uint32_t bits, unsigned instructions) {
    append(BPF_JMP | BPF_JSET | BPF_K, bits, 0, instructions);
  }
  void unless_equal(std::uint32_t value, std::uint32_t action) {
    append(BPF_JMP | BPF_JEQ | BPF_K, value, 1, 0);
    answer(action);
  }

  std::vector<sock_filter> program_;
};

bool set_limit(int resource, std::uint64_t value, std::uint64_t hard_value) {
  const rlimit limit{.rlim_cur = value, .rlim_max = hard_value};
  return ::setrlimit(static_cast<__rlimit_resource_t>(resource), &limit) == 0;
}

// A lower limit that was set before stays in force. The hard limit is one second above the soft one: the soft limit
// sends a signal that can be recognised, the hard one SIGKILL.
bool lower_limit(int resource, std::uint64_t value) {
  rlimit limit{};
  if (::getrlimit(static_cast<__rlimit_resource_t>(resource), &limit) != 0) return false;
  return limit.rlim_max <= value || set_limit(resource, value, value + 1);
}

// No core dump, no file, no new descriptor; bounded memory and processor time.
bool set_limits(const SandboxLimits& limits) {
  return set_limit(RLIMIT_CORE, 0, 0) && set_limit(RLIMIT_FSIZE, 0, 0) && set_limit(RLIMIT_NOFILE, 0, 0) &&
         lower_limit(RLIMIT_AS, limits.memory_bytes) && lower_limit(RLIMIT_CPU, limits.cpu_seconds);
}

}  // namespace

bool is_sandbox_known() {
  return kArchitecture != 0;
}

bool lock_in(const SandboxLimits& limits) {
  if (!is_sandbox_known()) {
    errno = ENOSYS;
    return false;
  }
  CallFilter filter;
  filter.allow_with_argument(__NR_write, 0, static_cast<std::uint32_t>(limits.output));
  for (const long call : kHarmless) filter.allow(static_cast<std::uint32_t>(call));
  filter.allow_anonymous_mapping(__NR_mmap);
  filter.allow_without_bits(__NR_mprotect, 2, PROT_EXEC);
  // The order matters: the filter forbids the calls that set the limits. The kernel demands no-new-privileges before
  // a filter.
  return set_limits(limits) && ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && filter.install();
}

}  // namespace holdfast::hdf5_reader
