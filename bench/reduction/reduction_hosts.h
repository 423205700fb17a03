#pragma once

#include <string>
#include <vector>

#include "support/host_threads.h"

namespace holdfast {

struct HostsBenchmark {
  int hosts = 2;
  int ranks = 1;  // of each host
  int turns = 7;
  // The network namespace of each host, as a path or below /run/netns, and its address there. None: loopback.
  std::vector<std::string> namespaces;
  std::vector<std::string> addresses;
  // Another transport for the sums (ucx_link.h), measured in turns with sockets; empty: none.
  HostGroup::Wrap other_link{};
};

// Connects the hosts of a pair, which listen and dial in the namespaces of the first two hosts. Throws
// Error{invalid_argument} for namespaces without an address, or of another number of hosts.
HostGroup::Connect connect_of(const HostsBenchmark& options);

// Prints a table: sums over hosts, next to what the same sockets stream and what shared memory does.
void measure_hosts(const HostsBenchmark& options);

}  // namespace holdfast
