// A replica of this host is a child process. It inherits a socket pair for messages, a life page in shared memory, and
// the run directory's lock. Its death is seen first at the robust mutex of the life page. Its exit status follows by a
// process descriptor (pidfd), whose number cannot be reused meanwhile. docs/decisions/processes.md

#include "process/local_replicas.h"

#include <chrono>
#include <utility>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "channel/descriptors.h"
#include "channel/messages.h"
#include "holdfast/base/error.h"
#include "holdfast/base/log.h"
#include "process/sweeper.h"

namespace holdfast::recovery {
namespace {

namespace asio = boost::asio;

// An exec takes milliseconds. From a network file system that does not answer it would never end.
constexpr std::chrono::seconds kSpawnTimeout(10);
// How long the run waits until the processes that a replica left are gone.
constexpr std::chrono::seconds kSweepTimeout(5);

// Reports its end when the processes that it had started are gone, too.
class LocalReplica final : public ReplicaProcess, public std::enable_shared_from_this<LocalReplica> {
 public:
  // `inherited` are the run directory's lock and, if there is one, the fence.
  static std::shared_ptr<LocalReplica> start(asio::io_context& io, Sweeper& sweeper, std::vector<int> inherited,
                                             const ReplicaStarter::Program& program, ReplicaStarter::Handlers handlers);

  void watch_for_death() override;
  void send(const Message& message) const override { channel_.send(message, Deadline::after({})); }
  void ask_to_leave(int signal) override;
  void kill() override;
  bool has_joined() const override { return has_joined_; }

  int pid() const override { return process_.pid(); }
  std::time_t started() const override { return started_; }
  std::int64_t step() const override { return page_.step.load(std::memory_order_relaxed); }
  JoinState join_state() const override { return page_.join_state.load(std::memory_order_relaxed); }
  std::uint64_t samples() const override { return page_.samples.load(std::memory_order_relaxed); }
  Heartbeat heartbeat(int member, std::uint64_t arrivals) const override;
  Load load(int member, int shards, int at_once) const override;
  std::string what_in_background() const override { return page_.what_in_background(); }
  bool is_stopped() const override { return process_.is_stopped(); }
  std::chrono::nanoseconds cpu_demand() const override { return process_.cpu_demand(); }
  std::optional<Crash> crash() const override { return CrashPage::read(life_, process_.pid()); }

 private:
  LocalReplica(asio::io_context& io, Sweeper& sweeper, int member, ReplicaStarter::Handlers handlers, Channel channel,
               SharedMemory life, Process process);

  void wait_for_exec(FileDescriptor exec, std::string executable);
  void take_exec();
  void fail_to_start(const Error& error);
  template <class Handler>
  auto while_alive(Handler handler);
  Sweeper::WhenGone when_gone();
  void wait_for_messages();
  void wait_for_exit();
  void receive_all();
  void on_died();
  void on_exit_possible();
  void end_what_it_started();
  void on_swept(int ended, bool is_any_left);

  asio::io_context& io_;
  Sweeper& sweeper_;
  const int member_;
  ReplicaStarter::Handlers handlers_;
  Channel channel_;
  SharedMemory life_;
  LifePage& page_;
  Process process_;
  const std::time_t started_ = std::time(nullptr);
  asio::posix::stream_descriptor channel_events_;
  asio::posix::stream_descriptor exit_events_;
  asio::steady_timer sweep_timer_;
  asio::steady_timer exec_timer_;
  std::optional<asio::posix::stream_descriptor> exec_events_;  // while nobody knows whether the program runs
  std::string executable_;
  bool is_asked_to_leave_ = false;
  bool has_joined_ = false;
  bool is_over_ = false;                   // its end was reported
  std::optional<DeathWatch> death_watch_;  // last: its thread uses the page
};

std::shared_ptr<LocalReplica> LocalReplica::start(asio::io_context& io, Sweeper& sweeper, std::vector<int> inherited,
                                                  const ReplicaStarter::Program& program,
                                                  ReplicaStarter::Handlers handlers) {
  SharedMemory life = SharedMemory::create("holdfast-life", LifePage::kBytes + CrashPage::kBytes);
  // Made before the process exists, since the worker only finds the page.
  LifePage::make(life);
  auto [own_end, worker_end] = Channel::create();
  // Copies with numbers above 2, because the program gets its standard streams under the lower ones.
  const FileDescriptor channel_to_inherit = duplicate(worker_end.descriptor());
  const FileDescriptor life_to_inherit = duplicate(life.descriptor());
  std::vector<std::string> variables = program.variables;
  inherited.insert(inherited.begin(), {channel_to_inherit.value(), life_to_inherit.value()});
  variables.push_back(fmt::format("{}={}", kWorkerVariable, fmt::join(inherited, ",")));
  // All that the program starts inherits this mark, by which the sweeper finds it.
  variables.push_back(sweeper.variable_of(program.member));
  const SpawnOptions options{.executable = program.executable,
                             .arguments = program.arguments,
                             .variables = std::move(variables),
                             .inherited = std::move(inherited),
                             .ignores_failing_writes = program.ignores_failing_writes};
  FileDescriptor exec;
  const auto spawn = [&] {
    if (program.is_waited_for) return Process::spawn(options, Deadline::after(kSpawnTimeout));
    Process::Begun begun = Process::begin(options);
    exec = std::move(begun.exec);
    return std::move(begun.process);
  };
  std::shared_ptr<LocalReplica> replica(
      new LocalReplica(io, sweeper, program.member, std::move(handlers), std::move(own_end), std::move(life), spawn()));
  if (exec.is_open()) replica->wait_for_exec(std::move(exec), program.executable);
  // After the construction, because handlers hold weak pointers to the object.
  replica->wait_for_messages();
  replica->wait_for_exit();
  return replica;
}

LocalReplica::LocalReplica(asio::io_context& io, Sweeper& sweeper, int member, ReplicaStarter::Handlers handlers,
                           Channel channel, SharedMemory life, Process process)
    : io_(io),
      sweeper_(sweeper),
      member_(member),
      handlers_(std::move(handlers)),
      channel_(std::move(channel)),
      life_(std::move(life)),
      page_(LifePage::find(life_)),
      process_(std::move(process)),
      // Copies, because Boost.Asio closes the descriptors that it gets.
      channel_events_(io, duplicate(channel_.descriptor()).release()),
      exit_events_(io, duplicate(process_.descriptor()).release()),
      sweep_timer_(io),
      exec_timer_(io) {}

void LocalReplica::watch_for_death() {
  if (std::exchange(has_joined_, true)) return;
  try {
    // It waits for the mutex of the page on a thread of its own, hence the post to the io_context.
    death_watch_.emplace(page_, [&io = io_, weak = weak_from_this()] {
      asio::post(io, [weak] {
        if (const auto self = weak.lock()) self->on_died();
      });
    });
  } catch (const Error& error) {
    log(LogLevel::warning,
        fmt::format("watchdog: {}; so the death of process {} would be noticed a little later", error.what(), member_));
  }
}

void LocalReplica::ask_to_leave(int signal) {
  is_asked_to_leave_ = true;
  process_.signal_group(signal);
}

void LocalReplica::kill() {
  // From here on its processes are not given time any more.
  is_asked_to_leave_ = false;
  process_.kill_group();
  // The exit was seen already, and its handler waits for processes that were allowed to take their time.
  if (process_.has_ended()) end_what_it_started();
}

Heartbeat LocalReplica::heartbeat(int member, std::uint64_t arrivals) const {
  // Read first, and with acquire: the times of steps are at least those of so many.
  const std::uint64_t steps = page_.steps.load(std::memory_order_acquire);
  return {.member = member,
          .progress = page_.progress.load(std::memory_order_relaxed),
          .phase = page_.phase.load(std::memory_order_relaxed),
          .step = step(),
          .steps = steps,
          .step_time = page_.time_in_steps(Phase::computing) + page_.time_in_steps(Phase::updating),
          .arrivals = arrivals,
          .background = page_.in_background()};
}

Load LocalReplica::load(int member, int shards, int at_once) const {
  const std::uint64_t steps = page_.steps.load(std::memory_order_acquire);
  return {.member = member,
          .shards = shards,
          .at_once = at_once,
          .steps = steps,
          .computing = page_.time_in_steps(Phase::computing),
          .waiting = page_.time_in_steps(Phase::waiting_for_peers)};
}

// A completion that is queued when the replica is dropped still comes. Hence the weak pointer.
template <class Handler>
auto LocalReplica::while_alive(Handler handler) {
  return [weak = weak_from_this(), handler](const boost::system::error_code& error) {
    const auto self = weak.lock();
    if (!error && self != nullptr) handler(*self);
  };
}

// A program on a file system that answers slowly must hold up nothing else here.
void LocalReplica::wait_for_exec(FileDescriptor exec, std::string executable) {
  executable_ = std::move(executable);
  exec_events_.emplace(io_, exec.release());
  exec_events_->async_wait(asio::posix::stream_descriptor::wait_read,
                           while_alive([](LocalReplica& self) { self.take_exec(); }));
  exec_timer_.expires_after(kSpawnTimeout);
  exec_timer_.async_wait(while_alive([](LocalReplica& self) {
    if (!self.exec_events_) return;
    self.exec_events_.reset();
    self.fail_to_start(
        Error(ErrorCode::deadline_exceeded, fmt::format("the start of {} took too long", self.executable_)));
  }));
}

void LocalReplica::take_exec() {
  if (!exec_events_ || is_over_) return;
  exec_timer_.cancel();
  const FileDescriptor exec(exec_events_->release());
  exec_events_.reset();
  try {
    Process::check_exec(exec.value(), executable_);
  } catch (const Error& error) {
    fail_to_start(error);
  }
}

void LocalReplica::fail_to_start(const Error& error) {
  is_over_ = true;
  process_.kill_group();
  handlers_.on_start_failed(error);
}

void LocalReplica::wait_for_messages() {
  channel_events_.async_wait(asio::posix::stream_descriptor::wait_read, while_alive([](LocalReplica& self) {
                               self.receive_all();
                               if (!self.channel_.is_closed()) self.wait_for_messages();
                             }));
}

void LocalReplica::wait_for_exit() {
  exit_events_.async_wait(asio::posix::stream_descriptor::wait_read,
                          while_alive([](LocalReplica& self) { self.on_exit_possible(); }));
}

// A wrong message is a failure of its sender. It ends neither this loop nor the run.
void LocalReplica::receive_all() {
  try {
    while (std::optional<Message> message = channel_.try_receive()) handlers_.on_message(*message);
  } catch (const Error& error) {
    handlers_.on_bad_message(error.what());
  } catch (const nlohmann::json::exception& error) {
    handlers_.on_bad_message(error.what());
  }
}

Sweeper::WhenGone LocalReplica::when_gone() {
  return [weak = weak_from_this()](int ended) {
    if (const auto self = weak.lock()) self->on_swept(ended, false);
  };
}

// Messages come first, because a failure that was reported explains the death.
void LocalReplica::on_died() {
  receive_all();
  handlers_.on_death();
}

// The process is reaped only when all is gone. Until then no other group can get its number.
void LocalReplica::on_exit_possible() {
  if (!process_.has_ended()) return wait_for_exit();
  // A program that cannot run ends its process, which says why before.
  take_exec();
  if (is_over_) return;
  if (!is_asked_to_leave_) return end_what_it_started();
  // A shell may be gone before its child has saved its state.
  sweeper_.await(member_, when_gone());
}

void LocalReplica::end_what_it_started() {
  if (is_over_) return;
  process_.kill_group();
  sweeper_.end(member_, when_gone());
  sweep_timer_.expires_after(kSweepTimeout);
  sweep_timer_.async_wait(while_alive([](LocalReplica& self) { self.on_swept(0, true); }));
}

void LocalReplica::on_swept(int ended, bool is_any_left) {
  // The sweeper's answer and the end of the time for it may both arrive.
  if (std::exchange(is_over_, true)) return;
  sweep_timer_.cancel();
  // Reaped before the last messages are read, so that no further ones can follow.
  const std::optional<ExitStatus> status = process_.try_reap();
  receive_all();
  if (ended > 0 || is_any_left) handlers_.on_swept(ended, is_any_left);
  handlers_.on_exit(status.value());
}

// Owns the sweeper, whose destructor ends all that the replicas have left.
class LocalReplicas final : public ReplicaStarter {
 public:
  LocalReplicas(asio::io_context& io, int lock, std::function<void()> when_sweeper_lost, const Fence* fence)
      : io_(io), lock_(lock), fence_(fence), sweeper_(io, lock, std::move(when_sweeper_lost)) {}

  std::shared_ptr<ReplicaProcess> start(const Program& program, Handlers handlers) override {
    if (fence_ == nullptr) return LocalReplica::start(io_, sweeper_, {lock_}, program, std::move(handlers));
    // A copy with a number above 2, as for the other descriptors.
    const FileDescriptor fence = duplicate(fence_->for_processes().value());
    return LocalReplica::start(io_, sweeper_, {lock_, fence.value()}, program, std::move(handlers));
  }

 private:
  asio::io_context& io_;
  const int lock_;
  const Fence* const fence_;
  Sweeper sweeper_;
};

}  // namespace

std::unique_ptr<ReplicaStarter> local_replicas(asio::io_context& io, int lock, std::function<void()> when_sweeper_lost,
                                               const Fence* fence) {
  return std::make_unique<LocalReplicas>(io, lock, std::move(when_sweeper_lost), fence);
}

}  // namespace holdfast::recovery
