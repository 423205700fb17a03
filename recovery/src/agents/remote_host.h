#pragma once

// Another host of the run as the head sees it: its agent carries out what is asked for here, over a connection that may
// be lost and come back.
//
//   away --serve()--> resuming --its agent names its processes--> there --the connection is closed--> away
//                         '-------------------------------------------------------------------------->'
//
// Nothing here waits. What is said to a process while the host is away is refused or dropped, and its agent names on
// its return what lives there. docs/decisions/agent-connections.md

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hosts/agent_connection.h"  // first, for the sake of Asio

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "agents/folder_of_run.h"
#include "agents/host_messages.h"
#include "hosts/host_agent.h"

namespace holdfast::recovery {

class RemoteReplica;

// For the thread that runs the io_context.
class RemoteHost final : public HostAgent {
 public:
  struct Handlers {
    // The host is there, for the first time or again. Processes of this run that live there and are in no generation,
    // with the steps of their states. Ends of others are reported by their own handlers afterwards.
    std::function<void(const std::vector<int>& members, const std::vector<std::int64_t>& steps)> on_present{};
    // Its agent is gone, or does not answer. From `fenced_at` on nothing there trains or writes any more, unless the
    // host has come back. Not called after end_run().
    std::function<void(const std::string& why, BootTime fenced_at)> on_lost{};
    // Its agent was asked by a signal to leave the run.
    std::function<void(int signal)> on_leaving{};
  };

  // `io` outlives it. `folder` is what its agent compares its run directory with; null: nothing.
  RemoteHost(boost::asio::io_context& io, const HostTimes& times, Handlers handlers,
             std::shared_ptr<HeadFolder> folder = nullptr);
  ~RemoteHost() override;

  // Begins with a connection that was just taken, and that is open. One that is there already counts as lost, since its
  // agent would not have dialed again otherwise.
  void serve(std::shared_ptr<AgentConnection> connection);
  bool is_there() const { return is_present_; }
  // Whether its agent was heard within this time, on a connection that is open.
  bool is_heard(BootTime within) const {
    return connection_ != nullptr && boot_time_now() - connection_->beats().heard() < within;
  }
  // Tells the agent that the run is over, and closes the connection.
  void end_run(int exit_code, const std::string& sentence);
  // The agent does not have the last message yet.
  bool is_being_told() const { return !last_.expired(); }

  // HostAgent. start() throws Error{unavailable} while the host is away; that a process could not be started there
  // comes as on_start_failed. Orders to a host that is away are dropped, but for kill().
  std::shared_ptr<ReplicaProcess> start(const ReplicaStarter::Program& program,
                                        ReplicaStarter::Handlers handlers) override;
  void open_generation(const Generation& generation) override;
  void cancel_generation() override;
  void when_unreached(OnUnreached handler) override { on_unreached_ = std::move(handler); }
  std::uint64_t arrivals(int member) const override;
  // Empty: the memory of another host cannot be read here. Its agent has it.
  std::optional<MemorySnapshots::Whole> newest_snapshot() const override { return std::nullopt; }
  // Throws Error{unavailable}: devices of other hosts are not watched yet.
  void watch_devices(const std::vector<int>& cuda_numbers, GpuWatch::Handlers handlers) override;
  void stop_watching_devices() override {}

 private:
  friend class RemoteReplica;

  void take(const nlohmann::json& message);
  void take_presence(const Presence& presence);
  void take_of(RemoteReplica& replica, const std::string& kind, const nlohmann::json& message);
  void order(const nlohmann::json& message);
  void lose(const std::string& why);
  std::shared_ptr<RemoteReplica> find(int member) const;

  const HostTimes times_;
  const Handlers handlers_;
  const std::shared_ptr<HeadFolder> folder_;
  OnUnreached on_unreached_;
  boost::asio::steady_timer presence_timer_;
  std::map<int, std::weak_ptr<RemoteReplica>> replicas_;  // by member; the head drops them
  std::shared_ptr<AgentConnection> connection_;           // null: it is away
  std::vector<int> resumed_;                              // named to this connection's agent
  bool is_present_ = false;
  std::weak_ptr<AgentConnection> last_;  // that is being closed with the run
  const std::shared_ptr<const bool> is_alive_ = std::make_shared<const bool>(true);
};

}  // namespace holdfast::recovery
