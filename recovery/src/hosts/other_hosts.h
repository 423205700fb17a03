#pragma once

// The hosts of a run besides the head's own, as the watchdog has them: who is there, and the agent of each. The
// watchdog of a single host has none. agents/remote_hosts.h has those of a run over several; it needs OpenSSL, which
// programs that supervise a single host are not linked with.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "hosts/host_agent.h"
#include "links/host_address.h"

namespace holdfast::recovery {

// Hosts are numbered from 1 on; 0 is the head's own. For the thread that runs the io_context.
class OtherHosts {
 public:
  // Events of the supervisor with these names (decide/supervisor.h).
  struct Handlers {
    std::function<void(int host)> on_joined{};
    std::function<void(int host, const std::string& why)> on_lost{};
    std::function<void(int host)> on_fence_passed{};
    std::function<void(int host, const std::vector<int>& members, const std::vector<std::int64_t>& steps)>
        on_returned{};
    std::function<void(int host, int signal)> on_leaving{};
  };

  virtual ~OtherHosts() = default;

  // Begins to wait for their agents, once. `io` outlives the object. Throws Error where nothing can listen.
  virtual void open(boost::asio::io_context& io, Handlers handlers) = 0;
  // Lives as long as this object. Orders to a host that is away are dropped.
  virtual HostAgent& agent(int host) = 0;
  // Where the agent of a host that has joined takes connections of others. For host 0: `own_port` of the head's host.
  virtual HostAddress links_of(int host, int own_port) const = 0;
  // Tells all agents how the run has ended. Blocks until they have been told, for a second at most. The last call.
  virtual void end_run(int exit_code, const std::string& sentence) = 0;
};

}  // namespace holdfast::recovery
