#pragma once

// The agent of the host on which this process runs.

#include <chrono>
#include <memory>

#include <boost/asio/io_context.hpp>

#include "hosts/host_agent.h"
#include "links/link_exchange.h"
#include "links/link_listener.h"

namespace holdfast::recovery {

struct LocalHostOptions {
  bool is_plain_program = false;  // processes read no messages
  // In a run over several hosts: where connections of the other hosts arrive. It outlives the host.
  LinkListener* links = nullptr;
  std::chrono::milliseconds reach_time = LinkExchange::Hosts{}.reach_time;
};

// `io` outlives it. `starter` starts processes of this host.
std::unique_ptr<HostAgent> local_host(boost::asio::io_context& io, std::unique_ptr<ReplicaStarter> starter,
                                      const LocalHostOptions& options);

}  // namespace holdfast::recovery
