// Faults are made with the system's own means (signals, mmap, RLIMIT_AS), so that recovery meets what it would meet in
// a real failure. docs/decisions/testing.md

#include "faults/fault_strikes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <filesystem>
#include <fstream>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "holdfast/base/draws.h"
#include "holdfast/base/error.h"
#include "holdfast/base/shared_memory.h"

namespace holdfast::recovery::strike {
namespace {

[[noreturn]] void sleep_for_ever() {
  while (true) std::this_thread::sleep_for(std::chrono::hours(1));
}

// Runs in a forked child of a process with several threads, so it may only make system calls. It keeps no descriptor.
// The process may be killed meanwhile, and then its channel must close and its lock must be released at once.
[[noreturn]] void wake_later(pid_t sleeper, std::chrono::milliseconds duration) {
  // The signal is set before the parent is compared: a parent that died in between is noticed by one of the two.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::close_range(0, ~0U, 0);
  if (::getppid() != sleeper) ::_exit(0);
  timespec left{.tv_sec = duration.count() / 1000, .tv_nsec = duration.count() % 1000 * 1'000'000};
  while (::nanosleep(&left, &left) != 0 && errno == EINTR) continue;
  // Repeats the signal until the awakened process kills this child. On a busy machine it may not be stopped yet when
  // the first signal comes.
  constexpr int kTries = 6000;
  for (int i = 0; i < kTries; ++i) {
    ::kill(sleeper, SIGCONT);
    const timespec pause{.tv_sec = 0, .tv_nsec = 10'000'000};
    ::nanosleep(&pause, nullptr);
  }
  ::_exit(0);
}

// The size of the process's address space, in bytes.
rlim_t address_space() {
  std::ifstream file("/proc/self/statm");
  rlim_t pages = 0;
  if (!(file >> pages)) throw Error(ErrorCode::input_output, "cannot read /proc/self/statm");
  return pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE));
}

// Limits the address space while it lives. The exception ends the limit, because the process must be able to report
// the failure.
class AddressSpaceLimit {
 public:
  explicit AddressSpaceLimit(rlim_t bytes) {
    if (::getrlimit(RLIMIT_AS, &before_) != 0) throw holdfast::system_error(errno, "cannot read RLIMIT_AS");
    // The hard limit stays as it is. A process without rights could not raise it again.
    set({.rlim_cur = std::min(bytes, before_.rlim_max), .rlim_max = before_.rlim_max});
  }
  ~AddressSpaceLimit() { ::setrlimit(RLIMIT_AS, &before_); }
  AddressSpaceLimit(const AddressSpaceLimit&) = delete;
  AddressSpaceLimit& operator=(const AddressSpaceLimit&) = delete;

 private:
  static void set(const rlimit& limit) {
    if (::setrlimit(RLIMIT_AS, &limit) != 0) throw holdfast::system_error(errno, "cannot set RLIMIT_AS");
  }

  rlimit before_{};
};

std::vector<std::byte> random_bytes(std::uint64_t seed) {
  constexpr std::uint64_t kMostBytes = 1024;
  Draws draws(seed);
  std::vector<std::byte> bytes(1 + draws.below(kMostBytes));
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(draws.next());
  return bytes;
}

template <typename Hook>
const Hook& require(const Hook& hook, const Fault& fault) {
  if (!hook) {
    throw Error(ErrorCode::unsupported,
                fmt::format("the fault \"{}\" acts on the channel to the watchdog, and this process has none",
                            fault.specification));
  }
  return hook;
}

// Names of savepoints end in their step with leading zeros, so the newest has the greatest name. Empty when there is
// no savepoint.
std::string newest_savepoint(const std::string& directory) {
  std::string newest;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("savepoint-") && name.ends_with(".h5")) newest = std::max(newest, name);
  }
  return newest.empty() ? "" : directory + "/" + newest;
}

void flip_byte(int file, std::uint64_t offset, const std::string& path) {
  std::byte value{};
  if (::pread(file, &value, 1, static_cast<off_t>(offset)) == 1) {
    // Inverted, because a random value might be the one that is there already.
    value ^= std::byte{0xff};
    if (::pwrite(file, &value, 1, static_cast<off_t>(offset)) == 1) return;
  }
  throw holdfast::system_error(errno, fmt::format("cannot damage byte {} of {}", offset, path));
}

void damage(const std::string& path, std::uint64_t seed) {
  constexpr int kBytesToFlip = 16;
  const FileDescriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  struct stat status {};
  if (!file.is_open() || ::fstat(file.value(), &status) != 0)
    throw holdfast::system_error(errno, fmt::format("cannot damage {}", path));
  if (status.st_size == 0) return;
  Draws draws(seed);
  for (int i = 0; i < kBytesToFlip; ++i) {
    flip_byte(file.value(), draws.below(static_cast<std::uint64_t>(status.st_size)), path);
  }
  if (::fsync(file.value()) != 0) throw holdfast::system_error(errno, fmt::format("cannot sync {}", path));
}

}  // namespace

void kill(const Fault&, const Faults::Process&) {
  ::kill(::getpid(), SIGKILL);
  // The kernel may deliver the signal a moment later. Without this line the process would train on until then.
  sleep_for_ever();
}

void stop(const Fault&, const Faults::Process&) {
  ::kill(::getpid(), SIGSTOP);
}

void pause(const Fault& fault, const Faults::Process&) {
  const pid_t self = ::getpid();
  const pid_t waker = ::fork();
  if (waker < 0) throw holdfast::system_error(errno, "cannot start the process that ends a pause");
  if (waker == 0) wake_later(self, fault.duration);
  ::kill(self, SIGSTOP);
  // The child repeats its signal until it is killed. It is reaped, so that a run with many pauses collects no
  // zombies.
  ::kill(waker, SIGKILL);
  while (::waitpid(waker, nullptr, 0) < 0 && errno == EINTR) continue;
}

void segfault(const Fault&, const Faults::Process&) {
  // The default action, as for a bug, and not a handler of the application.
  std::signal(SIGSEGV, SIG_DFL);
  void* const page =
      ::mmap(nullptr, static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) throw holdfast::system_error(errno, "cannot map a page to fault on");
  // Volatile, because the compiler may leave out a write that nothing reads.
  *static_cast<volatile char*>(page) = 1;
}

void throw_exception(const Fault& fault, const Faults::Process&) {
  throw std::runtime_error(fmt::format("injected exception ({})", fault.specification));
}

void terminate(const Fault&, const Faults::Process&) {
  std::terminate();
}

void loop(const Fault&, const Faults::Process&) {
  // Volatile, because the compiler may assume that a loop without side effects ends.
  for (volatile std::uint64_t turns = 0;;) turns = turns + 1;
}

void hang(const Fault&, const Faults::Process&) {
  sleep_for_ever();
}

void run_out_of_memory(const Fault&, const Faults::Process&) {
  // Little enough to be used up at once.
  constexpr rlim_t kRoom = rlim_t{64} << 20U;
  constexpr std::size_t kBlockBytes = std::size_t{1} << 20U;
  const AddressSpaceLimit limit(address_space() + kRoom);
  std::vector<std::unique_ptr<std::byte[]>> blocks;
  // Nothing is written to the blocks. So the address space runs out, and the machine's memory stays free.
  while (true) blocks.emplace_back(new std::byte[kBlockBytes]);
}

void close_channel(const Fault& fault, const Faults::Process& process) {
  require(process.hooks.close_channel, fault)();
}

void send_garbage(const Fault& fault, const Faults::Process& process) {
  require(process.hooks.send_garbage, fault)(random_bytes(fault.seed));
}

void lose_beats(const Fault& fault, const Faults::Process& process) {
  require(process.hooks.stop_beats, fault)(std::nullopt);
}

void delay_beats(const Fault& fault, const Faults::Process& process) {
  require(process.hooks.stop_beats, fault)(fault.duration);
}

void damage_savepoint(const Fault& fault, const Faults::Process& process) {
  const std::string path = newest_savepoint(process.run_directory);
  // Survivors hand over their own state, so a run that recovers from them does not resume from this file.
  if (!path.empty()) damage(path, fault.seed);
  kill(fault, process);
}

// The watchdog's death ends this process, too.
void kill_watchdog(const Fault&, const Faults::Process& process) {
  ::kill(process.watchdog_pid, SIGKILL);
  sleep_for_ever();
}

}  // namespace holdfast::recovery::strike
