#pragma once

// What `holdfast run -- PROGRAM` does: on a single host, or on each host of a run over several. There the first host
// has the head, which decides for all; each other one runs an agent, which starts the head's processes there.
//
//   run_program({.replicas = 2, .run_directory = "run", .command = {"./train"}}, {},
//               {.nnodes = 2, .node_rank = 1, .head = "node0:29400", .secret = "secret"});
//
// All hosts share the run directory, under one name. See docs/decisions/agents.md.

#include <string>
#include <vector>

#include "holdfast/recovery/launch.h"
#include "holdfast/recovery/watchdog.h"

namespace holdfast::recovery {

// `options` and `devices` are as for for_any_program(), of one host; each host starts `options.replicas` processes.
//
// On a host that is not the first, blocks until the head says that the run is over, and returns the run's outcome.
// Before that: kExitUnrecoverable when the head sends this host home; kExitStopped when no head is reached within
// `options.join_timeout`, when a head that was lost does not come back within `hosts.head_timeout`, and when a signal
// asked this host to leave. Where the head was lost, `options.when_unfinished` gets the newest state in memory.
//
// Throws as for_any_program() and run_watchdog(), and Error for a secret that cannot be used.
RunOutcome run_program(WatchdogOptions options, std::vector<std::string> devices, const HostFlags& hosts);

}  // namespace holdfast::recovery
