// Processes are found by a mark in their environment. A process group is left by setsid(). A subreaper is not told
// whose orphans it gets, and loses them when it dies. Control groups need rights that a user's program may not have.
// docs/decisions/processes.md

#include "process/marked_processes.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdlib>

#include <fmt/format.h>

#include "channel/descriptors.h"
#include "holdfast/base/error.h"
#include "holdfast/base/whole_number.h"

namespace holdfast::recovery {
namespace {

constexpr std::string_view kMarkVariable = "HOLDFAST_DESCENDANT_OF=";

// Linux allows 6 MiB for arguments and environment.
constexpr std::size_t kLargestEnvironment = std::size_t{8} << 20;

// An exec takes milliseconds, unless the program is read from a very slow disk.
constexpr int kMostAttempts = 1000;

// Reads the value of the variable: marks of runs within runs, with slashes between them.
std::optional<int> member_in(std::string_view marks, std::string_view run) {
  for (std::size_t at = marks.find(run); at != std::string_view::npos; at = marks.find(run, at + 1)) {
    // A mark within a longer number belongs to another run.
    if (at > 0 && marks[at - 1] != '/') continue;
    const std::string_view rest = marks.substr(at + run.size());
    int member = -1;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), member);
    const bool is_whole = end == rest.data() + rest.size() || *end == '/';
    if (error == std::errc{} && is_whole && member >= 0) return member;
  }
  return std::nullopt;
}

// A field of the line in /proc/PID/stat, counted from 1 as in proc(5). 0 when there are fewer fields.
std::uint64_t field_of(std::string_view line, int number) {
  // The second field, the name of the program, may contain anything.
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string_view::npos) return 0;
  line.remove_prefix(name_end + 1);
  for (int field = 2; field < number; ++field) {
    const std::size_t space = line.find(' ');
    if (space == std::string_view::npos) return 0;
    line.remove_prefix(space + 1);
  }
  std::uint64_t value = 0;
  std::from_chars(line.data(), line.data() + line.size(), value);
  return value;
}

// Whether a process that showed no environment may show one a moment later. `process` is its folder in /proc.
bool is_between_programs(int process) {
  const FileDescriptor file(::openat(process, "stat", O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) return false;
  std::array<char, 2048> line;
  const ssize_t bytes = ::read(file.value(), line.data(), line.size());
  if (bytes <= 0) return false;
  const std::string_view text(line.data(), static_cast<std::size_t>(bytes));
  const std::uint64_t code_begin = field_of(text, 26);
  const bool has_environment = field_of(text, 50) != field_of(text, 51);
  // During an exec Linux sets the begin of the code last of all.
  if (code_begin != 0) return has_environment;
  // A process without memory has no program either.
  return ::readlinkat(process, "exe", line.data(), line.size()) > 0;
}

}  // namespace

std::optional<int> marked_member(std::string_view environment, std::string_view run) {
  for (std::size_t at = environment.find(kMarkVariable); at != std::string_view::npos;
       at = environment.find(kMarkVariable, at + 1)) {
    if (at > 0 && environment[at - 1] != '\0') continue;
    std::string_view marks = environment.substr(at + kMarkVariable.size());
    marks = marks.substr(0, marks.find('\0'));
    if (const std::optional<int> member = member_in(marks, run)) return member;
  }
  return std::nullopt;
}

Marks Marks::create() {
  // The number of the process alone is not unique: it is given again, and is 1 in many containers.
  std::uint64_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != static_cast<ssize_t>(sizeof number)) {
    throw system_error(errno, "cannot draw a random number to mark the processes of a run");
  }
  return Marks(fmt::format("{}.{}.", ::getpid(), number));
}

std::string Marks::variable_of(int member) const {
  const std::string name(kMarkVariable.substr(0, kMarkVariable.size() - 1));
  const char* around = std::getenv(name.c_str());
  // A replica may start a run of its own. Its processes keep the outer mark, so the outer run still finds them.
  const std::string outer = around == nullptr || *around == '\0' ? "" : std::string(around) + "/";
  return fmt::format("{}={}{}{}", name, outer, run_, member);
}

MarkedProcesses::MarkedProcesses(std::string_view run) : run_(run) {
  const FileDescriptor folder(::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.is_open()) throw system_error(errno, "cannot look for processes in /proc");
  folder_ = duplicate(folder.value());
  void* const memory =
      ::mmap(nullptr, kLargestEnvironment, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw system_error(errno, "cannot get memory to look for processes");
  environment_ = static_cast<char*>(memory);
}

MarkedProcesses::~MarkedProcesses() {
  ::munmap(environment_, kLargestEnvironment);
}

void MarkedProcesses::rewind() {
  ::lseek(folder_.value(), 0, SEEK_SET);
  entries_begin_ = entries_end_ = 0;
}

std::optional<MarkedProcess> MarkedProcesses::next() {
  while (const char* const name = next_name()) {
    const std::optional<int> pid = whole_number<int>(name);
    if (!pid) continue;
    // Opened before its environment is read. So a signal reaches the process whose mark was seen, or none.
    FileDescriptor process(static_cast<int>(::syscall(SYS_pidfd_open, *pid, 0)));
    if (!process.is_open()) continue;
    if (const std::optional<int> member = marked_member(environment_of(name), run_)) {
      return MarkedProcess{.member = *member, .process = std::move(process)};
    }
  }
  return std::nullopt;
}

const char* MarkedProcesses::next_name() {
  if (entries_begin_ == entries_end_) {
    // Not readdir(3): the sweeping process is forked from a program with threads and may not allocate.
    const ssize_t bytes = ::getdents64(folder_.value(), entries_.data(), entries_.size());
    if (bytes <= 0) return nullptr;
    entries_begin_ = 0;
    entries_end_ = static_cast<std::size_t>(bytes);
  }
  const auto* const entry = reinterpret_cast<const dirent64*>(entries_.data() + entries_begin_);
  entries_begin_ += entry->d_reclen;
  return entry->d_name;
}

// Empty for processes that are gone, zombies, threads of the kernel, and processes of other users. During an exec a
// process has no environment for a moment, so it is read again.
std::string_view MarkedProcesses::environment_of(const char* pid) {
  const FileDescriptor process(::openat(folder_.value(), pid, O_PATH | O_DIRECTORY | O_CLOEXEC));
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    const std::string_view environment = read_environment(process.value());
    if (!environment.empty() || !is_between_programs(process.value())) return environment;
    ::poll(nullptr, 0, 1);
  }
  return {};
}

std::string_view MarkedProcesses::read_environment(int process) {
  const FileDescriptor file(::openat(process, "environ", O_RDONLY | O_CLOEXEC));
  std::size_t size = 0;
  while (file.is_open() && size < kLargestEnvironment) {
    const ssize_t bytes = ::read(file.value(), environment_ + size, kLargestEnvironment - size);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) break;
    size += static_cast<std::size_t>(bytes);
  }
  return {environment_, size};
}

}  // namespace holdfast::recovery
