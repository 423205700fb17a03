// The head reads heartbeats and loads at any moment, and must not wait for a network. So an agent sends what it sees
// with each beat, and the newest of it is kept here. What an agent reports of a process that the head has dropped
// meanwhile is dropped, too. docs/decisions/agent-connections.md

#include "agents/remote_host.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "holdfast/base/error.h"
#include "holdfast/recovery/exit_codes.h"

namespace holdfast::recovery {

// Beats that an agent may be late with what it sees. A host that is silent for longer may be cut off.
constexpr int kLateBeats = 3;

// Represents a process of another host, which outlives it. That it is destroyed tells the agent to drop the process.
class RemoteReplica final : public ReplicaProcess {
 public:
  RemoteReplica(RemoteHost& host, int member, ReplicaStarter::Handlers handlers)
      : host_(host), member_(member), handlers_(std::move(handlers)) {
    status_.heartbeat.member = member;
  }
  ~RemoteReplica() override { host_.order({{"kind", kDrop}, {"member", member_}}); }

  // The agent of its host watches for it.
  void watch_for_death() override { has_joined_ = true; }
  void send(const Message& message) const override;
  void ask_to_leave(int signal) override {
    host_.order({{"kind", kAskToLeave}, {"member", member_}, {"signal", signal}});
  }
  void kill() override {
    is_killed_ = true;
    host_.order({{"kind", kKill}, {"member", member_}});
  }
  bool has_joined() const override { return has_joined_; }

  int pid() const override { return pid_; }
  std::time_t started() const override { return started_; }
  std::int64_t step() const override { return status_.heartbeat.step; }
  JoinState join_state() const override { return status_.join_state; }
  std::uint64_t samples() const override { return status_.samples; }
  Heartbeat heartbeat(int member, std::uint64_t arrivals) const override;
  Load load(int member, int shards, int at_once) const override;
  std::string what_in_background() const override { return status_.in_background; }
  bool is_stopped() const override { return status_.is_stopped; }
  std::chrono::nanoseconds cpu_demand() const override { return status_.cpu_demand; }
  std::optional<Crash> crash() const override { return crash_; }

 private:
  friend class RemoteHost;

  RemoteHost& host_;
  const int member_;
  const ReplicaStarter::Handlers handlers_;
  ProcessStatus status_{};
  BootTime seen_at_ = boot_time_now();  // when the status came
  int pid_ = 0;                         // until the agent has said that it runs
  std::time_t started_ = std::time(nullptr);
  bool has_joined_ = false;
  bool is_killed_ = false;
  bool is_over_ = false;  // its end was reported
  std::optional<Crash> crash_{};
};

// As a local process that is gone, whose end is reported in another way. Descriptors cannot be sent to another host:
// memory of this one is of no use there.
void RemoteReplica::send(const Message& message) const {
  HOLDFAST_ASSERT(message.descriptors.empty());
  if (!host_.is_present_) throw Error(ErrorCode::unavailable, "the host of the process is away");
  host_.order({{"kind", kTell}, {"member", member_}, {"message", message.body}});
}

Heartbeat RemoteReplica::heartbeat(int member, std::uint64_t arrivals) const {
  Heartbeat heartbeat = status_.heartbeat;
  heartbeat.member = member;
  heartbeat.arrivals = arrivals;
  // Otherwise a process would count as hung because the network is slow.
  heartbeat.is_current = boot_time_now() - seen_at_ <= kLateBeats * host_.times_.beat;
  return heartbeat;
}

Load RemoteReplica::load(int member, int shards, int at_once) const {
  return {.member = member,
          .shards = shards,
          .at_once = at_once,
          .steps = status_.heartbeat.steps,
          .computing = status_.computing,
          .waiting = status_.waiting};
}

RemoteHost::RemoteHost(boost::asio::io_context& io, const HostTimes& times, Handlers handlers,
                       std::shared_ptr<HeadFolder> folder)
    : times_(times), handlers_(std::move(handlers)), folder_(std::move(folder)), presence_timer_(io) {}

RemoteHost::~RemoteHost() {
  if (connection_ != nullptr) connection_->close();
}

void RemoteHost::serve(std::shared_ptr<AgentConnection> connection) {
  HOLDFAST_ASSERT(connection->is_open());
  lose("its agent has connected again");
  connection_ = std::move(connection);
  connection_->set_handlers({.on_message = [this](const nlohmann::json& message) { take(message); },
                             .on_closed = [this](const std::string& why) { lose(why); }});
  // Processes that the head knows. The agent ends all others, such as those of an earlier head.
  resumed_.clear();
  std::erase_if(replicas_, [](const auto& entry) { return entry.second.expired(); });
  for (const auto& [member, weak] : replicas_) {
    const auto replica = weak.lock();
    if (replica != nullptr && !replica->is_over_) resumed_.push_back(member);
  }
  connection_->send({{"kind", kResume},
                     {"members", resumed_},
                     {"folder", to_json(folder_ != nullptr ? folder_->facts() : FolderOfHead{})}});
  // An agent answers once its beats are acknowledged. One that never does would stay, and be of no use.
  presence_timer_.expires_after(times_.host);
  presence_timer_.async_wait(
      [this, weak = std::weak_ptr<const bool>(is_alive_)](const boost::system::error_code& error) {
        if (error || weak.expired() || connection_ == nullptr || is_present_) return;
        lose(fmt::format("its agent did not say within {} ms which processes live there", times_.host.count()));
      });
}

void RemoteHost::end_run(int exit_code, const std::string& sentence) {
  if (connection_ == nullptr) return;
  presence_timer_.cancel();
  is_present_ = false;
  const std::shared_ptr<AgentConnection> last = std::exchange(connection_, nullptr);
  last->send({{"kind", kOver}, {"exit_code", exit_code}, {"sentence", sentence}});
  last->close_when_sent();
  last_ = last;
}

std::shared_ptr<ReplicaProcess> RemoteHost::start(const ReplicaStarter::Program& program,
                                                  ReplicaStarter::Handlers handlers) {
  if (!is_present_) {
    throw Error(ErrorCode::unavailable, fmt::format("process {} cannot be started: its host is away", program.member));
  }
  // Before there is a process that would have to be dropped: it throws for what cannot be sent.
  connection_->send(start_message(program));
  const auto replica = std::make_shared<RemoteReplica>(*this, program.member, std::move(handlers));
  // Held weakly: the head owns the process, and dropping it is an order.
  replicas_[program.member] = replica;
  return replica;
}

void RemoteHost::open_generation(const Generation& generation) {
  nlohmann::json message = generation_message(generation);
  if (folder_ != nullptr) {
    folder_->begin_generation();
    message["run"] = folder_->facts().run;
    message["token"] = folder_->facts().token;
  }
  order(message);
}

void RemoteHost::cancel_generation() {
  order({{"kind", kCancelGeneration}});
}

std::uint64_t RemoteHost::arrivals(int member) const {
  const auto replica = find(member);
  return replica == nullptr ? 0 : replica->status_.heartbeat.arrivals;
}

void RemoteHost::watch_devices(const std::vector<int>& /*cuda_numbers*/, GpuWatch::Handlers /*handlers*/) {
  throw Error(ErrorCode::unavailable, "the devices of another host cannot be watched");
}

// A wrong message closes the connection, with the sentence of what is thrown here.
void RemoteHost::take(const nlohmann::json& message) {
  const auto kind = message.at("kind").get<std::string>();
  if (kind == kPresent) return take_presence(parse_presence(message));
  if (!is_present_) throw Error(ErrorCode::input_output, fmt::format("its agent sent \"{}\" too early", kind));
  if (kind == kStatuses) {
    for (const nlohmann::json& status : message.at("statuses")) {
      ProcessStatus seen = parse_status(status);
      // A status that was on its way when the head dropped its process.
      const auto replica = find(seen.heartbeat.member);
      if (replica == nullptr) continue;
      replica->status_ = std::move(seen);
      replica->seen_at_ = boot_time_now();
    }
    return;
  }
  if (kind == kLeaving) {
    if (handlers_.on_leaving) handlers_.on_leaving(whole_number_in<int>(message, "signal"));
    return;
  }
  if (kind == kUnreached) {
    const int generation = whole_number_in<int>(message, "generation");
    const int peer = whole_number_in<int>(message, "peer");
    if (on_unreached_) on_unreached_(generation, peer, message.at("what").get<std::string>());
    return;
  }
  const auto replica = find(whole_number_in<int>(message, "member"));
  // The head has dropped it while the message was on its way.
  if (replica != nullptr && !replica->is_over_) take_of(*replica, kind, message);
}

// Answers `resume`. What was ordered while the host was away was lost with the connection, and is ordered again.
void RemoteHost::take_presence(const Presence& presence) {
  if (is_present_) throw Error(ErrorCode::input_output, "its agent named its processes twice");
  // Another host was quicker, or training has begun.
  if (presence.offered && (folder_ == nullptr || !folder_->take_over(*presence.offered))) {
    return end_run(kExitUnrecoverable,
                   "the run directory of this host holds another run than the one that goes on; to join that, move "
                   "the folder away");
  }
  is_present_ = true;
  presence_timer_.cancel();
  // Dropped since they were named.
  for (const int member : resumed_) {
    if (find(member) == nullptr) order({{"kind", kDrop}, {"member", member}});
  }
  std::vector<int> members;
  std::vector<std::int64_t> steps;
  for (std::size_t i = 0; i < presence.members.size(); ++i) {
    const auto replica = find(presence.members[i]);
    if (replica == nullptr) continue;
    // Killed while the host was away.
    if (replica->is_killed_) {
      replica->kill();
      continue;
    }
    members.push_back(presence.members[i]);
    steps.push_back(presence.steps[i]);
  }
  // First who lives there, then who has ended: the supervisor counts ends of processes that it has again.
  if (handlers_.on_present) handlers_.on_present(members, steps);
  for (const ProcessEnd& end : presence.ended) {
    const auto replica = find(end.member);
    if (replica != nullptr && !replica->is_over_) take_of(*replica, kExited, end_message(end));
  }
}

void RemoteHost::take_of(RemoteReplica& replica, const std::string& kind, const nlohmann::json& message) {
  const ReplicaStarter::Handlers& handlers = replica.handlers_;
  if (kind == kStarted) {
    replica.pid_ = whole_number_in<int>(message, "pid");
    replica.started_ = whole_number_in<std::int64_t>(message, "at");
  } else if (kind == kNotStarted) {
    const Error error(code_in(message), message.at("what").get<std::string>());
    replica.is_over_ = true;
    if (handlers.on_start_failed) handlers.on_start_failed(error);
  } else if (kind == kSaid) {
    Message said{.body = message.at("message")};
    // What the process sent is its own failure, and not one of the connection.
    try {
      handlers.on_message(said);
    } catch (const Error& error) {
      handlers.on_bad_message(error.what());
    } catch (const nlohmann::json::exception& error) {
      handlers.on_bad_message(error.what());
    }
  } else if (kind == kBadMessage) {
    handlers.on_bad_message(message.at("what").get<std::string>());
  } else if (kind == kFailed) {
    handlers.on_failure(message.at("what").get<std::string>(), message.at("is_unrecoverable").get<bool>());
  } else if (kind == kDied) {
    handlers.on_death();
  } else if (kind == kSwept) {
    handlers.on_swept(whole_number_in<int>(message, "ended"), message.at("is_any_left").get<bool>());
  } else if (kind == kExited) {
    ProcessEnd end = parse_end(message);
    replica.is_over_ = true;
    replica.crash_ = std::move(end.crash);
    handlers.on_exit(end.status);
  } else {
    throw Error(ErrorCode::input_output, fmt::format("its agent sent a message of the unknown kind \"{}\"", kind));
  }
}

// What an agent gets of an earlier connection would be out of date. So nothing is kept for the next one.
void RemoteHost::order(const nlohmann::json& message) {
  if (is_present_) connection_->send(message);
}

void RemoteHost::lose(const std::string& why) {
  if (connection_ == nullptr) return;
  // Taken out first: handlers that are called below see a host that is away.
  const std::shared_ptr<AgentConnection> lost = std::exchange(connection_, nullptr);
  // Its agent counts from a beat that came before this one, or was this one.
  const BootTime fenced_at = lost->beats().heard() + times_.until_fenced();
  lost->close();
  presence_timer_.cancel();
  const bool was_present = std::exchange(is_present_, false);
  if (was_present && handlers_.on_lost) handlers_.on_lost(why, fenced_at);
}

std::shared_ptr<RemoteReplica> RemoteHost::find(int member) const {
  const auto found = replicas_.find(member);
  return found == replicas_.end() ? nullptr : found->second.lock();
}

}  // namespace holdfast::recovery
