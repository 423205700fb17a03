// Starts the helper so that it inherits two descriptors and nothing else. A hostile file may take it over, so it gets
// no environment, no other open file and no signal handler. It is watched by a process descriptor and killed when it
// stops making progress. Reasons: docs/decisions/exchange.md.

#include "foreign_hdf5/reader_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <mutex>
#include <utility>

#include "holdfast/base/error.h"
#include "holdfast/format/hdf5_reader.h"

namespace holdfast::format {
namespace {

constexpr const char* kProgramName = "holdfast-hdf5-reader";

// The descriptor numbers at which the helper expects output and input.
constexpr int kOutputNumber = 1;
constexpr int kInputNumber = 3;

struct PathSetting {
  std::mutex mutex;
  std::string path;  // guarded by mutex
};

// A function, so that it exists before the first static object that uses it.
PathSetting& path_setting() {
  static PathSetting instance;
  return instance;
}

// Duplicates above the numbers that the child uses, so that moving one descriptor there cannot overwrite another.
FileDescriptor duplicate_high(int descriptor) {
  FileDescriptor result(::fcntl(descriptor, F_DUPFD_CLOEXEC, 16));
  if (!result.is_open()) throw system_error(errno, "cannot pass a descriptor to the reader of HDF5 files");
  return result;
}

void require_zero(int error_number, const std::string& problem) {
  if (error_number != 0) throw system_error(error_number, problem);
}

// What posix_spawn does in the child between fork and exec.
class SpawnPlan {
 public:
  SpawnPlan(int input, int output) {
    require_zero(posix_spawn_file_actions_init(&actions_), kProblem);
    require_zero(posix_spawnattr_init(&attributes_), kProblem);
    require_zero(posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0), kProblem);
    require_zero(posix_spawn_file_actions_adddup2(&actions_, output, kOutputNumber), kProblem);
    require_zero(posix_spawn_file_actions_addopen(&actions_, STDERR_FILENO, "/dev/null", O_WRONLY, 0), kProblem);
    require_zero(posix_spawn_file_actions_adddup2(&actions_, input, kInputNumber), kProblem);
    require_zero(posix_spawn_file_actions_addclosefrom_np(&actions_, kInputNumber + 1), kProblem);
    set_signals();
  }
  ~SpawnPlan() {
    posix_spawnattr_destroy(&attributes_);
    posix_spawn_file_actions_destroy(&actions_);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;

  const posix_spawn_file_actions_t* actions() const { return &actions_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  static constexpr const char* kProblem = "cannot prepare the start of the reader of HDF5 files";

  // The child gets a process group of its own: the application decides what Ctrl-C at the terminal does.
  void set_signals() {
    sigset_t none;
    sigset_t all;
    ::sigemptyset(&none);
    ::sigfillset(&all);
    require_zero(posix_spawnattr_setsigmask(&attributes_, &none), kProblem);
    require_zero(posix_spawnattr_setsigdefault(&attributes_, &all), kProblem);
    require_zero(posix_spawnattr_setpgroup(&attributes_, 0), kProblem);
    require_zero(
        posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP),
        kProblem);
  }

  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

// Returns false when the descriptor stayed silent for the whole time.
bool wait_for_input(int descriptor, std::chrono::seconds patience) {
  const Deadline deadline = Deadline::after(patience);
  for (;;) {
    // Rounded up, so that poll() does not return just before the deadline and spin.
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline.remaining()).count();
    pollfd entry{.fd = descriptor, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&entry, 1, static_cast<int>(std::min<long>(left, 1'000'000)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) throw system_error(errno, "cannot wait for the reader of HDF5 files");
    if (deadline.has_passed()) return false;
  }
}

}  // namespace

ReaderProcess::ReaderProcess(const std::string& program, std::vector<std::string> arguments, const SharedMemory& file,
                             std::chrono::seconds patience)
    : patience_(patience) {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) throw system_error(errno, "cannot create a pipe from the reader of HDF5 files");
  pipe_ = FileDescriptor(ends[0]);
  // Closed here at the end of this function: the pipe ends when the helper does, and not with this process.
  const FileDescriptor writing(ends[1]);
  // Only a hint: a larger pipe saves switches between the two processes.
  static_cast<void>(::fcntl(ends[0], F_SETPIPE_SZ, 1 << 20));
  const FileDescriptor output = duplicate_high(writing.value());
  const FileDescriptor input = duplicate_high(file.read_only_descriptor().value());
  start(program, std::move(arguments), input.value(), output.value());
}

void ReaderProcess::start(const std::string& program, std::vector<std::string> arguments, int file, int pipe) {
  arguments.insert(arguments.begin(), program);
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  // The environment may hold secrets and settings of HDF5, so the helper gets an empty one.
  char* environment[] = {nullptr};

  const SpawnPlan plan(file, pipe);
  const int result =
      ::posix_spawn(&pid_, program.c_str(), plan.actions(), plan.attributes(), pointers.data(), environment);
  if (result != 0) {
    const Error error = system_error(result, fmt::format("cannot start the reader of HDF5 files {}", program));
    throw Error(ErrorCode::unavailable, error.what() + std::string("; install all of Holdfast"));
  }
  // A process descriptor cannot be confused with another process that gets the same number later.
  process_ = FileDescriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  if (!process_.is_open()) {
    const Error error = system_error(errno, "cannot watch the reader of HDF5 files (Linux 5.3 is needed)");
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    throw error;
  }
}

ReaderProcess::~ReaderProcess() {
  if (is_reaped_ || !process_.is_open()) return;
  kill();
  try {
    wait();
  } catch (const Error&) {
    // The helper has received the signal and ends. Only its status was not collected.
  }
}

void ReaderProcess::kill() const {
  static_cast<void>(::syscall(SYS_pidfd_send_signal, process_.value(), SIGKILL, nullptr, 0));
}

void ReaderProcess::read(std::span<std::byte> out) {
  while (!out.empty()) {
    if (!wait_for_input(pipe_.value(), patience_)) {
      throw Error(ErrorCode::deadline_exceeded, fmt::format("the program that reads HDF5 files made no progress for {} "
                                                            "s and was stopped; use another copy of the file",
                                                            patience_.count()));
    }
    const ssize_t count = ::read(pipe_.value(), out.data(), out.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw system_error(errno, "cannot read from the reader of HDF5 files");
    if (count == 0) throw ReaderEnded();
    out = out.subspan(static_cast<std::size_t>(count));
  }
}

std::optional<ReaderExit> ReaderProcess::wait() {
  if (!wait_for_input(process_.value(), patience_)) kill();
  int status = 0;
  pid_t pid = -1;
  do {
    pid = ::waitpid(pid_, &status, 0);
  } while (pid < 0 && errno == EINTR);
  is_reaped_ = true;
  // An application may reap all children itself, or have the system do so.
  if (pid < 0) return std::nullopt;
  if (WIFSIGNALED(status)) return ReaderExit{.code = 0, .signal = WTERMSIG(status)};
  return ReaderExit{.code = WEXITSTATUS(status), .signal = 0};
}

void set_hdf5_reader_path(std::string path) {
  const std::lock_guard lock(path_setting().mutex);
  path_setting().path = std::move(path);
}

std::string find_hdf5_reader() {
  {
    const std::lock_guard lock(path_setting().mutex);
    if (!path_setting().path.empty()) return path_setting().path;
  }
  std::error_code ignored;
  // /proc/self/exe is the running program itself, whatever its arguments claim.
  const std::filesystem::path here = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  // In this order: the build folder, an installation that was moved, the place of the installation.
  const std::filesystem::path places[] = {here, here.parent_path() / "libexec" / "holdfast", HOLDFAST_LIBEXEC_FOLDER};
  std::string names;
  for (const std::filesystem::path& place : places) {
    const std::string path = (place / kProgramName).string();
    if (::access(path.c_str(), X_OK) == 0) return path;
    names += (names.empty() ? "" : ", ") + place.string();
  }
  throw Error(ErrorCode::unavailable, fmt::format("the program {}, which reads HDF5 files, was not found in {}; "
                                                  "install all of Holdfast, or set its path with set_hdf5_reader_path",
                                                  kProgramName, names));
}

}  // namespace holdfast::format
