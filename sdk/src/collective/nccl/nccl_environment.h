#pragma once

// The environment variables of NCCL. NCCL reads them once, before its first use in a process.

#include <string>
#include <utility>
#include <vector>

namespace holdfast {

struct NcclSituation {
  int version = 0;             // NcclLibrary::version()
  bool shares_device = false;  // two or more replicas of the run use the same GPU
  bool is_one_host = true;     // all replicas are on this host
  std::string process_name{};  // unique among all replica processes of the run, replacements included
};

// Names and values of the variables.
//
// - NVLS is always off. A process that makes its communicators anew must not use it, and its sums depend on what was
//   allocated before.
// - NCCL names its threads. Some of them spin while they wait, and by the names the watchdog knows that the replica
// does
//   not compute (recovery's cpu_time.h).
// - Ranks on one GPU: from 2.30.3 on NCCL has an option that allows them. Older versions refuse them, so such ranks
//   claim to be on different hosts and connect by sockets.
std::vector<std::pair<std::string, std::string>> nccl_environment(const NcclSituation& situation);

// Sets these variables in this process, except for those that the user has set. NCCL_COMM_BLOCKING is set to 0 in any
// case, with a warning if the user chose otherwise: a call that blocks has no deadline. Must be called before the first
// use of NCCL, while no other thread reads the environment.
void set_nccl_environment(const NcclSituation& situation);

}  // namespace holdfast
