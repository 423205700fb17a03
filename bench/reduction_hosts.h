#pragma once

#include <string>
#include <vector>

namespace holdfast {

struct HostsBenchmark {
  int hosts = 2;
  int ranks = 1;  // of each host
  int turns = 7;
  // The network namespace of each host, below /run/netns, and its address there. None: loopback.
  std::vector<std::string> namespaces;
  std::vector<std::string> addresses;
};

// Prints a table: sums over hosts, next to what the same sockets stream and what shared memory does.
void measure_hosts(const HostsBenchmark& options);

}  // namespace holdfast
