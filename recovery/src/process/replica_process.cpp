#include "process/replica_process.h"

#include <chrono>

#include <boost/asio/post.hpp>

#include "channel/descriptors.h"
#include "channel/messages.h"
#include "holdfast/base/error.h"
#include "holdfast/base/log.h"

namespace holdfast::recovery {
namespace {

namespace asio = boost::asio;

// An exec takes milliseconds; from a network file system that does not answer, for ever.
constexpr std::chrono::seconds kSpawnTimeout(10);
// For what a replica has left to be gone. The run waits for its end no longer.
constexpr std::chrono::seconds kSweepTimeout(5);

}  // namespace

std::shared_ptr<ReplicaProcess> ReplicaProcess::start(asio::io_context& io, Sweeper& sweeper, const Program& program,
                                                      Handlers handlers) {
  SharedMemory life = SharedMemory::create("holdfast-life", LifePage::kBytes + CrashPage::kBytes);
  LifePage::make(life);
  auto [own_end, worker_end] = Channel::create();
  const FileDescriptor channel_to_inherit = duplicate(worker_end.descriptor());
  const FileDescriptor life_to_inherit = duplicate(life.descriptor());
  std::vector<std::string> variables = program.variables;
  variables.push_back(std::string(kWorkerVariable) + "=" + std::to_string(channel_to_inherit.value()) + "," +
                      std::to_string(life_to_inherit.value()) + "," + std::to_string(program.lock));
  variables.push_back(sweeper.variable_of(program.member));
  Process process = Process::spawn({.executable = program.executable,
                                    .arguments = program.arguments,
                                    .variables = std::move(variables),
                                    .inherited = {channel_to_inherit.value(), life_to_inherit.value(), program.lock},
                                    .ignores_failing_writes = program.ignores_failing_writes},
                                   Deadline::after(kSpawnTimeout));
  std::shared_ptr<ReplicaProcess> replica(new ReplicaProcess(io, sweeper, program.member, std::move(handlers),
                                                             std::move(own_end), std::move(life), std::move(process)));
  replica->wait_for_messages();
  replica->wait_for_exit();
  return replica;
}

ReplicaProcess::ReplicaProcess(asio::io_context& io, Sweeper& sweeper, int member, Handlers handlers, Channel channel,
                               SharedMemory life, Process process)
    : io_(io),
      sweeper_(sweeper),
      member_(member),
      handlers_(std::move(handlers)),
      channel_(std::move(channel)),
      life_(std::move(life)),
      page_(LifePage::find(life_)),
      process_(std::move(process)),
      channel_events_(io, duplicate(channel_.descriptor()).release()),
      exit_events_(io, duplicate(process_.descriptor()).release()),
      sweep_timer_(io) {}

void ReplicaProcess::watch_for_death() {
  if (std::exchange(has_joined_, true)) return;
  try {
    death_watch_.emplace(page_, [&io = io_, weak = weak_from_this()] {
      asio::post(io, [weak] {
        if (const auto self = weak.lock()) self->on_died();
      });
    });
  } catch (const Error& error) {
    log(LogLevel::warning, std::string("watchdog: ") + error.what() + "; the death of process " +
                               std::to_string(member_) + " would be noticed a little later for that");
  }
}

void ReplicaProcess::send(const Message& message) const {
  channel_.send(message, Deadline::after({}));
}

void ReplicaProcess::ask_to_leave(int signal) {
  is_asked_to_leave_ = true;
  process_.signal_group(signal);
}

void ReplicaProcess::kill() {
  is_asked_to_leave_ = false;
  process_.kill_group();
  if (process_.has_ended()) end_what_it_started();
}

Pulse ReplicaProcess::pulse(int member, std::uint64_t arrivals) const {
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

Load ReplicaProcess::load(int member, int shards, int at_once) const {
  const std::uint64_t steps = page_.steps.load(std::memory_order_acquire);
  return {.member = member,
          .shards = shards,
          .at_once = at_once,
          .steps = steps,
          .computing = page_.time_in_steps(Phase::computing),
          .waiting = page_.time_in_steps(Phase::waiting_for_peers)};
}

// A completion that is queued already when the replica is dropped still comes: hence the weak pointers.
void ReplicaProcess::wait_for_messages() {
  channel_events_.async_wait(asio::posix::stream_descriptor::wait_read,
                             [weak = weak_from_this()](const boost::system::error_code& error) {
                               const auto self = weak.lock();
                               if (error || self == nullptr) return;
                               self->receive_all();
                               if (!self->channel_.is_closed()) self->wait_for_messages();
                             });
}

void ReplicaProcess::wait_for_exit() {
  exit_events_.async_wait(asio::posix::stream_descriptor::wait_read,
                          [weak = weak_from_this()](const boost::system::error_code& error) {
                            const auto self = weak.lock();
                            if (!error && self != nullptr) self->on_exit_possible();
                          });
}

void ReplicaProcess::receive_all() {
  try {
    while (std::optional<Message> message = channel_.try_receive()) handlers_.on_message(*message);
  } catch (const Error& error) {
    handlers_.on_bad_message(error.what());
  } catch (const nlohmann::json::exception& error) {
    handlers_.on_bad_message(error.what());
  }
}

void ReplicaProcess::on_died() {
  receive_all();
  handlers_.on_death();
}

// It is not reaped before all is gone: until then nobody else gets the number of its group.
void ReplicaProcess::on_exit_possible() {
  if (!process_.has_ended()) return wait_for_exit();
  if (!is_asked_to_leave_) return end_what_it_started();
  // A shell may be gone before its child has saved what it wants to save.
  sweeper_.await(member_, [weak = weak_from_this()](int ended) {
    if (const auto self = weak.lock()) self->on_swept(ended, false);
  });
}

void ReplicaProcess::end_what_it_started() {
  if (is_over_) return;
  process_.kill_group();
  sweeper_.end(member_, [weak = weak_from_this()](int ended) {
    if (const auto self = weak.lock()) self->on_swept(ended, false);
  });
  sweep_timer_.expires_after(kSweepTimeout);
  sweep_timer_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
    const auto self = weak.lock();
    if (!error && self != nullptr) self->on_swept(0, true);
  });
}

void ReplicaProcess::on_swept(int ended, bool is_any_left) {
  if (std::exchange(is_over_, true)) return;
  sweep_timer_.cancel();
  const std::optional<ExitStatus> status = process_.try_reap();
  receive_all();
  if (ended > 0 || is_any_left) handlers_.on_swept(ended, is_any_left);
  handlers_.on_exit(status.value());
}

}  // namespace holdfast::recovery
