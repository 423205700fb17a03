// The sweeping process exists because a watchdog that was killed can end nothing, and because a look through /proc
// takes milliseconds, on hosts with thousands of processes longer. It is forked from a program that may have threads,
// so it never allocates, takes no lock and executes no other program. docs/decisions/processes.md

#include "process/sweeper.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <utility>

#include <boost/asio/post.hpp>

#include <fmt/format.h>

#include "channel/descriptors.h"
#include "holdfast/base/deadline.h"
#include "holdfast/base/error.h"
#include "holdfast/base/threads.h"
#include "process/open_descriptors.h"
#include "process/signals.h"

namespace holdfast::recovery {
namespace {

// A killed process is gone within milliseconds, unless the kernel cannot release it.
constexpr std::chrono::seconds kLongestSweep(10);
// After a pass that found nothing there is another one: a process that forked meanwhile may have hidden its child.
constexpr int kEmptyPasses = 2;
constexpr std::chrono::milliseconds kFirstPause(1);
constexpr std::chrono::milliseconds kLongestPause(50);

// Both travel between two processes of one program, so their layout needs no care.
struct Request {
  int member;
  int is_to_be_killed;
};

struct SweepAnswer {
  int member;
  int ended;
};

// Made before the fork, because the forked process may not allocate.
// Everything that the sweeping process does.
class Sweep {
 public:
  struct Descriptors {
    int socket;
    int watchdog;  // of its process
    int lock;
  };

  Sweep(std::string_view run, const Descriptors& descriptors) : processes_(run), descriptors_(descriptors) {}

  [[noreturn]] void live() {
    stand_apart();
    while (take_requests()) {
      if (count_ == 0) continue;
      pass();
      answer();
    }
    end_all();
    ::_exit(0);
  }

 private:
  struct Task {
    int member;
    bool is_to_be_killed;
    int empty_passes;
    int ended;  // most of one pass
  };

  // A signal that ends the watchdog or its terminal must not end this process. Nor may it keep descriptors open whose
  // end others wait for.
  void stand_apart() {
    ::setsid();
    ::prctl(PR_SET_NAME, "run-sweeper");
    for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGPIPE}) ::signal(signal, SIG_IGN);
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    // A working directory keeps its file system from being unmounted.
    [[maybe_unused]] const int moved = ::chdir("/");
    close_others();
    const int null_device = ::open("/dev/null", O_RDWR);
    for (int descriptor = 0; descriptor < 3; ++descriptor) ::dup2(null_device, descriptor);
    if (null_device > 2) ::close(null_device);
  }

  void close_others() const {
    std::array<int, 4> kept{descriptors_.socket, descriptors_.watchdog, descriptors_.lock, processes_.descriptor()};
    std::sort(kept.begin(), kept.end());
    close_all_but(3, kept);
  }

  // Blocks until the first request, and between passes for a moment. False when the watchdog is gone.
  bool take_requests() {
    std::array<pollfd, 2> events{pollfd{.fd = descriptors_.socket, .events = POLLIN, .revents = 0},
                                 pollfd{.fd = descriptors_.watchdog, .events = POLLIN, .revents = 0}};
    const int ready = ::poll(events.data(), events.size(), count_ == 0 ? -1 : static_cast<int>(pause_.count()));
    if (ready <= 0) return true;
    // The socket alone is not enough: a process that a thread of the program has forked may keep its other end open.
    if (events[1].revents != 0) return false;
    while (count_ < tasks_.size()) {
      Request request{};
      const ssize_t bytes = ::recv(descriptors_.socket, &request, sizeof request, MSG_DONTWAIT);
      if (bytes == sizeof request) {
        take(request);
      } else {
        return bytes < 0 && (errno == EAGAIN || errno == EINTR);
      }
    }
    return true;
  }

  // A further request for a member replaces the one before it, so each member has one task.
  void take(const Request& request) {
    Task* const end = tasks_.data() + count_;
    Task* const task =
        std::find_if(tasks_.data(), end, [&](const Task& other) { return other.member == request.member; });
    if (task == end) ++count_;
    *task = {.member = request.member, .is_to_be_killed = request.is_to_be_killed != 0, .empty_passes = 0, .ended = 0};
    pause_ = std::chrono::milliseconds::zero();
  }

  // One look through /proc serves all tasks.
  void pass() {
    std::array<int, kMostTasks> found{};
    processes_.rewind();
    while (const std::optional<MarkedProcess> marked = processes_.next()) {
      for (std::size_t i = 0; i < count_; ++i) {
        if (tasks_[i].member != marked->member) continue;
        ++found[i];
        if (tasks_[i].is_to_be_killed) kill(*marked);
      }
    }
    for (std::size_t i = 0; i < count_; ++i) {
      tasks_[i].empty_passes = found[i] == 0 ? tasks_[i].empty_passes + 1 : 0;
      if (tasks_[i].is_to_be_killed) tasks_[i].ended = std::max(tasks_[i].ended, found[i]);
    }
  }

  void answer() {
    bool has_found_any = false;
    // From the end, because the last task moves to the position of one that is answered.
    for (std::size_t i = count_; i-- > 0;) {
      has_found_any = has_found_any || tasks_[i].empty_passes == 0;
      if (tasks_[i].empty_passes < kEmptyPasses) continue;
      const SweepAnswer answer{.member = tasks_[i].member, .ended = tasks_[i].ended};
      ::send(descriptors_.socket, &answer, sizeof answer, MSG_NOSIGNAL);
      tasks_[i] = tasks_[--count_];
    }
    // Each look costs milliseconds, so a process that does not end is looked for less and less often.
    pause_ = has_found_any ? std::clamp(pause_ * 2, kFirstPause, kLongestPause) : std::chrono::milliseconds::zero();
  }

  // The watchdog is gone, so all members are ended, and no request is needed.
  void end_all() {
    const Deadline deadline = Deadline::after(kLongestSweep);
    int empty_passes = 0;
    while (empty_passes < kEmptyPasses && !deadline.has_passed()) {
      processes_.rewind();
      ++empty_passes;
      while (const std::optional<MarkedProcess> marked = processes_.next()) {
        kill(*marked);
        empty_passes = 0;
      }
      if (empty_passes == 0) ::poll(nullptr, 0, static_cast<int>(kFirstPause.count()));
    }
  }

  // By its descriptor, because its number may belong to another process by then.
  static void kill(const MarkedProcess& marked) {
    ::syscall(SYS_pidfd_send_signal, marked.process.value(), SIGKILL, nullptr, 0);
  }

  // Further requests wait in the socket.
  static constexpr std::size_t kMostTasks = 128;

  MarkedProcesses processes_;
  const Descriptors descriptors_;
  std::array<Task, kMostTasks> tasks_{};
  std::size_t count_ = 0;
  std::chrono::milliseconds pause_{0};
};

// No handler of the program runs in the forked process, because signals are blocked at the fork.
pid_t fork_sweep(Sweep& sweep) {
  sigset_t before;
  const pid_t pid = fork_with_signals_blocked(before, [&sweep] { sweep.live(); });
  if (pid < 0) throw start_error(errno, "the process that ends what replicas leave");
  return pid;
}

}  // namespace

Sweeper::Sweeper(boost::asio::io_context& io, int lock, std::function<void()> when_lost)
    : when_lost_(std::move(when_lost)), socket_(io) {
  auto [own, other] = connected_sockets("a pair of sockets");
  const FileDescriptor watchdog(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  if (!watchdog.is_open()) {
    throw system_error(errno, fmt::format("cannot watch process {} (Linux 5.3 is needed)", ::getpid()));
  }
  const auto sweep = std::make_unique<Sweep>(
      marks_.run(), Sweep::Descriptors{.socket = other.value(), .watchdog = watchdog.value(), .lock = lock});
  pid_ = fork_sweep(*sweep);
  process_ = FileDescriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  socket_.assign(own.release());
  wait_for_answers();
}

Sweeper::~Sweeper() {
  boost::system::error_code ignored;
  socket_.close(ignored);
  // The closed socket makes the process end all. It is killed only when that takes longer than it may.
  const Deadline deadline = Deadline::after(kLongestSweep + std::chrono::seconds(1));
  if (!process_.is_open() || !wait_for_descriptor(process_.value(), POLLIN, deadline)) ::kill(pid_, SIGKILL);
  TEMP_FAILURE_RETRY(::waitpid(pid_, nullptr, 0));
}

void Sweeper::end(int member, WhenGone when_gone) {
  request(member, true, std::move(when_gone));
}

void Sweeper::await(int member, WhenGone when_gone) {
  request(member, false, std::move(when_gone));
}

void Sweeper::request(int member, bool is_to_be_killed, WhenGone when_gone) {
  const Request request{.member = member, .is_to_be_killed = is_to_be_killed ? 1 : 0};
  // Stored before the request is sent, so that lose() calls it, too.
  waiting_[member] = std::move(when_gone);
  const ssize_t bytes =
      is_lost_ ? -1 : ::send(socket_.native_handle(), &request, sizeof request, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (bytes != sizeof request) lose();
}

void Sweeper::wait_for_answers() {
  socket_.async_wait(boost::asio::posix::stream_descriptor::wait_read, [this](const boost::system::error_code& error) {
    if (error) return;
    take_answers();
    if (!is_lost_) wait_for_answers();
  });
}

void Sweeper::take_answers() {
  for (;;) {
    SweepAnswer answer{};
    const ssize_t bytes = ::recv(socket_.native_handle(), &answer, sizeof answer, MSG_DONTWAIT);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0 && errno == EAGAIN) return;
    if (bytes != sizeof answer) return lose();
    const auto waiting = waiting_.extract(answer.member);
    if (!waiting.empty()) waiting.mapped()(answer.ended);
  }
}

void Sweeper::lose() {
  if (!std::exchange(is_lost_, true)) when_lost_();
  // Posted, so that no handler runs within one of the functions above.
  for (auto& [member, when_gone] : std::exchange(waiting_, {})) {
    boost::asio::post(socket_.get_executor(), [when_gone = std::move(when_gone)] { when_gone(0); });
  }
}

}  // namespace holdfast::recovery
