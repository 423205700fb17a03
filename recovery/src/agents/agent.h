#pragma once

// The agent of a host other than that of the head: one process on each. It dials the head until it is taken, serves
// it (agents/agent_service.h), and dials again when it is lost. When no head is reached for `patience`, it gives up:
// its processes are killed, and the newest state in memory is its owner's to save.
//
//   Fence fence;
//   auto host = local_host(io, local_replicas(io, lock, when_sweeper_lost, &fence), {});
//   Agent agent(io, options, secret, std::move(host), fence, handlers);
//   io.run();
//
// It opens no port. docs/decisions/agent-connections.md

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "agents/agent_service.h"  // first, for the sake of Asio

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "holdfast/base/deadline.h"

#include "hosts/head_dialer.h"
#include "hosts/host_agent.h"
#include "hosts/introduction.h"
#include "hosts/secret.h"
#include "links/host_address.h"
#include "memory/fence.h"

namespace holdfast::recovery {

struct AgentOptions {
  HostAddress head{};
  Introduction introduction{};
  AgentConnection::Limits limits{};
  std::chrono::milliseconds join_timeout = std::chrono::minutes(10);  // for the head to take it, for the first time
  std::chrono::milliseconds patience = std::chrono::minutes(1);       // for a head that was lost
  AgentService::Folder folder{};                                      // the run directory of this host
};

// For the thread that runs the io_context.
class Agent {
 public:
  // How it ended, as a run does (holdfast/recovery/watchdog.h).
  struct End {
    int exit_code = 0;
    std::string sentence{};
    // It had no head any more, or one that does not take it, after this host had been part of the run: nobody else may
    // have the newest state.
    bool is_head_lost = false;
    // The head has begun anew: the owner is to put the earlier run aside, and to make another agent.
    bool begins_anew = false;
  };
  struct Handlers {
    // The last call. It may end the agent, which otherwise keeps its memory.
    std::function<void(const End&)> on_over{};
    // Another head has begun and may end what is here, so the newest state is to be saved now. It is not dialed
    // meanwhile.
    std::function<void()> on_another_head{};
    // Asked before a head that was lost is dialed again: why this agent must not, and ends; empty if it may.
    std::function<std::string()> why_not_dial{};
    // For a log: the head was reached, lost, or could not be reached at this attempt.
    std::function<void(const std::string&)> on_news{};
  };

  // Begins to dial. `io` and `fence` outlive it. Throws Error{invalid_argument} for times that cannot be
  // (check_times()), and Error{unavailable} where OpenSSL cannot do what is needed.
  Agent(boost::asio::io_context& io, AgentOptions options, const Secret& secret, std::unique_ptr<HostAgent> host,
        Fence& fence, Handlers handlers);
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  // Asks the head to go on without this host, whose end follows. Without a head, or when it is lost, it ends when the
  // states of its processes are in the memory of this host, for which it waits some seconds.
  void ask_to_leave(int signal);
  // The head had taken this host, and is lost.
  bool is_head_lost() const { return has_joined_ && !service_.has_head(); }
  // AgentService::may_save().
  bool may_save() const { return service_.may_save(); }
  // The newest state in memory of this host; valid until the next event.
  std::optional<MemorySnapshots::Whole> newest_snapshot() const { return service_.newest_snapshot(); }

 private:
  void dial(std::chrono::milliseconds time);
  void leave_without_head();
  void save_for_another_head();
  // Goes on with `next` when the states of waiting processes are in the memory of this host, or at the limit.
  void when_kept(Deadline limit, const std::function<void()>& next);
  void tell(const std::string& news) const;
  void end_without_head(int exit_code, const std::string& sentence);
  void end(const End& how);

  boost::asio::io_context& io_;
  const AgentOptions options_;
  const std::shared_ptr<boost::asio::ssl::context> tls_;
  const Handlers handlers_;
  AgentService service_;
  bool has_joined_ = false;
  bool is_leaving_ = false;
  boost::asio::steady_timer keep_timer_;
  std::unique_ptr<HeadDialer> dialer_;  // of the latest attempt to reach the head
};

}  // namespace holdfast::recovery
