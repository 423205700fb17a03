#pragma once

// What `holdfast run -- PROGRAM` does: on a single host, or on each host of a run over several. There the first host
// has the head, which decides for all; each other one runs an agent, which starts the head's processes there.
//
//   run_program({.replicas = 2, .run_directory = "run", .command = {"./train"}}, {},
//               {.nnodes = 2, .node_rank = 1, .head = "node0:29400", .secret = "secret"});
//
// All hosts share the run directory, under one name, unless `separate_run_dirs` says that each has one of its own. See
// docs/decisions/agents.md and docs/decisions/host-folders.md.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/recovery/launch.h"
#include "holdfast/recovery/run_start.h"
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

// Where this process is in a run, as its environment says.
struct HostOfRun {
  int hosts = 1;                  // that the run has
  int host = 0;                   // of this process; the first one decides for the run
  std::optional<int> replicas{};  // on this host, where the launcher says it
};

// Throws as who_says_several_hosts(), and Error{unsupported} where a launcher has started several processes on this
// host.
HostOfRun host_of_run();

// A run over several hosts whose program starts itself again for each replica, as supervise() does.
struct OwnRun {
  // They are those of this host, as run_watchdog() takes them.
  WatchdogOptions options{};
  OwnedRun::Options how{};  // how the first host takes the run directory; the others do not
  // For the first host, which calls it once it owns the directory: the options of a host, and choices of the run, which
  // all processes get. `max_replicas` is that of the run.
  std::function<WatchdogOptions()> begin{};
};

// To be called on each host, where host_of_run() says that there are several. Returns and throws as run_program(), and
// as `run.begin`.
RunOutcome run_on_hosts(const OwnRun& run);

}  // namespace holdfast::recovery
