#pragma once

// What NCCL reads from the environment of its process before its first use, and never again.

#include <string>
#include <utility>
#include <vector>

namespace holdfast {

struct NcclSituation {
  int version = 0;             // as NcclLibrary::version()
  bool shares_device = false;  // some replicas of the run are on one GPU
  bool is_one_host = true;     // all of them are on this host
  std::string process_name{};  // different for each replica process of the run, those that replace others too
};

// Names and values. NVLS is turned off in every situation: a process that restarts its communicators in place may not
// use it, and its sums depend on what was allocated before. NCCL names its threads, some of which spin while they wait:
// the watchdog tells by the name that the replica does not compute (recovery's cpu_time.h). NCCL accepts ranks on one
// GPU by an option of its own from 2.30.3 on. Before that it refuses them, so they pretend to be on different hosts,
// and talk by sockets.
std::vector<std::pair<std::string, std::string>> nccl_environment(const NcclSituation& situation);

// Sets them in this process, except where the user did. NCCL_COMM_BLOCKING becomes 0 in any case, and the log says so
// where the user wanted something else: a call that blocks has no deadline. Before NCCL's first use, while no other
// thread reads the environment.
void set_nccl_environment(const NcclSituation& situation);

}  // namespace holdfast
