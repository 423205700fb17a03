// Between the signal and its end the process runs in a program that is already broken. So the handler makes no
// allocation, takes no lock and uses no C++ stream, only system calls and memory that existed before. The watchdog
// looks up the names of functions afterwards. docs/decisions/processes.md

#include "process/crash_handler.h"

#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <ctime>
#include <string_view>

#include "holdfast/base/sanitizers.h"

namespace holdfast::recovery {
namespace {

constexpr std::array kCrashSignals{SIGSEGV, SIGBUS, SIGFPE, SIGABRT};
// Room for the unwinder's frames, and for the registers that the kernel saves (11 KiB with AMX).
constexpr std::size_t kStackBytes = 128 * 1024;
// The handler's own frames come first.
constexpr std::size_t kMostAddresses = CrashPage::kMostFrames + 8;

// All of this exists before a crash: a handler has no argument of its own, and may not allocate.
std::atomic<CrashPage*> crash_page = nullptr;
std::atomic<pid_t> crash_pid = 0;
std::atomic<pid_t> crashing_thread = 0;
std::atomic<int> first_signal = 0;
std::array<void*, kMostAddresses> crash_addresses;
std::array<char, 4096> crash_bytes;
std::array<char, 512> crash_line;
alignas(16) std::array<std::byte, kStackBytes> crash_stack;

struct sigaction default_action() {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  return action;
}

struct Registers {
  std::uint64_t instruction = 0;
  std::uint64_t stack = 0;
};

Registers registers_of(const void* context) {
  const mcontext_t& machine = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return {static_cast<std::uint64_t>(machine.gregs[REG_RIP]), static_cast<std::uint64_t>(machine.gregs[REG_RSP])};
#elif defined(__aarch64__)
  return {machine.pc, machine.sp};
#else
  static_cast<void>(machine);
  return {};
#endif
}

// After a call to an address without code the unwinder cannot go on. The return address is the newest word on the
// stack.
std::uint64_t newest_on_the_stack(std::uint64_t stack) {
  std::uint64_t word = 0;
  iovec to{.iov_base = &word, .iov_len = sizeof word};
  iovec from{.iov_base = reinterpret_cast<void*>(stack), .iov_len = sizeof word};
  // A system call, because the stack pointer may be what is broken: it then fails, where a load would crash again.
  return ::process_vm_readv(::getpid(), &to, 1, &from, 1, 0) == static_cast<ssize_t>(sizeof word) ? word : 0;
}

void write_addresses(CrashPage& page, const Registers& registers) {
  const int found = ::backtrace(crash_addresses.data(), static_cast<int>(crash_addresses.size()));
  const auto addresses = crash_addresses.begin();
  const auto end = addresses + std::max(0, found);
  auto next = std::find(addresses, end, reinterpret_cast<void*>(registers.instruction));
  page.frames[0].address = registers.instruction;
  page.count = 1;
  // The handler's own frames come before it. Where it is missing, all frames are the handler's.
  if (next != end) ++next;
  for (; next != end && page.count < CrashPage::kMostFrames; ++next) {
    page.frames[page.count++].address = reinterpret_cast<std::uint64_t>(*next);
  }
  if (page.count > 1) return;
  const std::uint64_t caller = newest_on_the_stack(registers.stack);
  if (caller != 0) page.frames[page.count++].address = caller;
}

// A line of /proc/self/maps: "55d0c0a00000-55d0c0a21000 r-xp 00002000 08:01 131 /usr/bin/true".
struct MapLine {
  std::string_view rest;

  std::uint64_t hexadecimal() {
    std::uint64_t value = 0;
    for (; !rest.empty(); rest.remove_prefix(1)) {
      const char digit = rest.front();
      if (digit >= '0' && digit <= '9') {
        value = value << 4 | static_cast<std::uint64_t>(digit - '0');
      } else if (digit >= 'a' && digit <= 'f') {
        value = value << 4 | static_cast<std::uint64_t>(digit - 'a' + 10);
      } else {
        break;
      }
    }
    return value;
  }
  void skip(std::size_t count) { rest.remove_prefix(std::min(count, rest.size())); }
  void skip_field() {
    skip(std::min(rest.find(' '), rest.size()));
    skip(std::min(rest.find_first_not_of(' '), rest.size()));
  }
};

void write_place(CrashPage& page, std::string_view text) {
  MapLine line{text};
  const std::uint64_t begin = line.hexadecimal();
  line.skip(1);
  const std::uint64_t end = line.hexadecimal();
  line.skip(1);
  line.skip_field();  // permissions
  const std::uint64_t offset = line.hexadecimal();
  line.skip(1);
  line.skip_field();  // device
  line.skip_field();  // inode
  if (line.rest.empty()) return;
  const std::size_t room = CrashPage::kPathBytes - 1;
  // The end of a long path names the file, so the beginning is cut off.
  const std::string_view path = line.rest.substr(line.rest.size() > room ? line.rest.size() - room : 0);
  for (std::uint32_t i = 0; i < page.count; ++i) {
    CrashPage::Frame& frame = page.frames[i];
    if (frame.address < begin || frame.address >= end) continue;
    frame.file_offset = frame.address - begin + offset;
    std::memcpy(frame.path.data(), path.data(), path.size());
    frame.path[path.size()] = '\0';
  }
}

void write_places(CrashPage& page) {
  const int file = ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  std::size_t length = 0;
  for (ssize_t count = 0; (count = ::read(file, crash_bytes.data(), crash_bytes.size())) > 0;) {
    for (ssize_t i = 0; i < count; ++i) {
      const char byte = crash_bytes[static_cast<std::size_t>(i)];
      if (byte != '\n') {
        // The end of a longer line is lost, and its frames may be named after a path that is cut.
        if (length < crash_line.size()) crash_line[length++] = byte;
        continue;
      }
      write_place(page, {crash_line.data(), length});
      length = 0;
    }
  }
  ::close(file);
}

[[noreturn]] void end_by(int signal) {
  const struct sigaction action = default_action();
  ::sigaction(signal, &action, nullptr);
  sigset_t only;
  ::sigemptyset(&only);
  ::sigaddset(&only, signal);
  ::pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
  ::raise(signal);
  ::_exit(128 + signal);
}

void on_crash(int signal, siginfo_t* info, void* context) {
  CrashPage* page = crash_page.load();
  const pid_t thread = ::gettid();
  pid_t nobody = 0;
  // A forked child has this handler and this page, too.
  if (page != nullptr && crash_pid.load() == ::getpid()) {
    if (crashing_thread.compare_exchange_strong(nobody, thread)) {
      first_signal = signal;
      // A reader takes `written` alone. So a process that dies within the next lines leaves no half of a stack.
      page->state = CrashPage::State::begun;
      page->pid = crash_pid.load();
      page->signal = signal;
      write_addresses(*page, registers_of(context));
      write_places(*page);
      page->state = CrashPage::State::written;
    } else if (nobody == thread) {
      end_by(first_signal);  // the memory that was being read is broken, too
    } else {
      // The thread that crashed first ends the process.
      // Five seconds at most: the first thread may hang in the handler, and the process must end all the same.
      for (int i = 0; i < 500; ++i) {
        const timespec moment{.tv_sec = 0, .tv_nsec = 10'000'000};
        ::nanosleep(&moment, nullptr);
      }
    }
  }
  const struct sigaction action = default_action();
  ::sigaction(signal, &action, nullptr);
  // After the return the processor repeats its own fault, so that a core dump shows the cause. A signal that was sent
  // would not come again.
  if (info->si_code <= 0 || signal == SIGABRT) ::raise(signal);
}

bool is_default(int signal) {
  struct sigaction action {};
  return ::sigaction(signal, nullptr, &action) == 0 && (action.sa_flags & SA_SIGINFO) == 0 &&
         action.sa_handler == SIG_DFL;
}

bool is_ours(int signal) {
  struct sigaction action {};
  return ::sigaction(signal, nullptr, &action) == 0 && (action.sa_flags & SA_SIGINFO) != 0 &&
         action.sa_sigaction == on_crash;
}

// After an overflow of the stack, a handler has no room on it. Linux keeps such a stack for each thread, so only the
// calling thread uses this one.
void use_stack_of_its_own() {
  stack_t stack{};
  if (::sigaltstack(nullptr, &stack) != 0 || (stack.ss_flags & SS_DISABLE) == 0) return;
  stack = {.ss_sp = crash_stack.data(), .ss_flags = 0, .ss_size = crash_stack.size()};
  ::sigaltstack(&stack, nullptr);
}

}  // namespace

CrashHandler::CrashHandler(CrashPage& page) {
  CrashPage* none = nullptr;
  // The report of a sanitizer says more.
  if (kIsSanitized || !crash_page.compare_exchange_strong(none, &page)) return;
  is_installed_ = true;
  crash_pid = ::getpid();
  // The first call of backtrace() loads a library, which a handler may not do.
  static_cast<void>(::backtrace(crash_addresses.data(), 1));
  use_stack_of_its_own();
  struct sigaction action {};
  action.sa_sigaction = on_crash;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (const int signal : kCrashSignals) {
    if (is_default(signal)) ::sigaction(signal, &action, nullptr);
  }
}

CrashHandler::~CrashHandler() {
  if (!is_installed_) return;
  const struct sigaction action = default_action();
  for (const int signal : kCrashSignals) {
    // The program may have set a handler since then, which is not ours to remove.
    if (is_ours(signal)) ::sigaction(signal, &action, nullptr);
  }
  crash_page = nullptr;
}

}  // namespace holdfast::recovery
