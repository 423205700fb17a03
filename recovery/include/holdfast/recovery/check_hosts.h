#pragma once

// What `holdfast doctor --hosts` does, on each host of a run over several: it finds out whether that run could begin.
// The hosts meet as they would for the run, with the same flags and the same secret. Host 0 compares what they have,
// and lets each pair of them connect. No program is started.
//
//   const HostsReport report = check_hosts({.hosts = {.nnodes = 2, .node_rank = 0, .head = "node0:29400",
//                                                     .secret = "secret"}, .run_directory = "/shared/run"});
//
// See docs/decisions/agents.md.

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "holdfast/recovery/hosts_report.h"
#include "holdfast/recovery/launch.h"

namespace holdfast::recovery {

// What is to be checked, and as what.
struct HostsCheckOptions {
  HostFlags hosts{};                   // which host this is, as for a run
  std::string run_directory = "run";   // that the run will have
  std::vector<std::string> command{};  // of the run; empty: programs are not compared
  int replicas = 0;                    // of each host; 0: as `holdfast run` finds it without devices
  std::string arithmetic{};            // on which the bits of this host depend; the hosts must have the same text
  // For the hosts to meet. The checks after that take half a minute at most.
  std::chrono::milliseconds join_timeout = std::chrono::minutes(1);
  // Called now and then with a sentence: a host has come, or could not be reached yet.
  std::function<void(const std::string&)> on_news{};
};

// Blocks until the hosts have met and all is checked, `join_timeout` and half a minute at most. SIGINT and SIGTERM end
// the wait for hosts that are missing, and a second one a second later or more that for connections. A third one ends
// the wait for other hosts to take the report. Host 0 reports what it knows by then. Other hosts return at the first
// one. Leaves nothing in the run directory.
//
// Throws Error{invalid_argument} where nothing says that there are several hosts, and what run_program() throws before
// it begins: for a secret that cannot be used, a program that is not there, a port or a folder that cannot be had.
HostsReport check_hosts(const HostsCheckOptions& options);

}  // namespace holdfast::recovery
