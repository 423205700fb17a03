#pragma once

// Which host of a run this process is on, as its options and its launcher say. Each value is taken from the first of
// these that has it:
//
//   options             --nnodes, --node-rank, --head, --secret, --separate-run-dirs
//   Holdfast's own      HOLDFAST_NNODES, HOLDFAST_NODE_RANK, HOLDFAST_HEAD, HOLDFAST_SECRET_FILE, HOLDFAST_RUN_ID,
//                       HOLDFAST_SEPARATE_RUN_DIRS
//   torchrun, Kubeflow  PET_NNODES, PET_NODE_RANK, PET_MASTER_ADDR, PET_MASTER_PORT, PET_RDZV_ENDPOINT, PET_RDZV_ID,
//                       PET_NPROC_PER_NODE
//   a step of Slurm     SLURM_STEP_NODELIST, SLURM_STEP_NUM_NODES, SLURM_NODEID, SLURM_STEP_TASKS_PER_NODE,
//                       SLURM_JOB_ID
//   Open MPI            OMPI_COMM_WORLD_SIZE, OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_LOCAL_SIZE, MASTER_ADDR,
//                       MASTER_PORT
//   an indexed job      JOB_COMPLETION_INDEX
//   another launcher    WORLD_SIZE, RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT: of one process on each host
//
// A pure function of both, which reads no environment itself. docs/decisions/launchers.md

#include <functional>
#include <optional>
#include <string>

#include "hosts/secret.h"
#include "links/host_address.h"

namespace holdfast::recovery {

// What the user says; the names are those of the command's options.
struct HostOptions {
  std::optional<int> hosts{};                // --nnodes
  std::optional<int> host{};                 // --node-rank
  std::optional<std::string> head{};         // --head
  std::optional<std::string> secret_file{};  // --secret
  bool has_separate_folders = false;         // --separate-run-dirs
};

struct Surroundings {
  int hosts = 1;
  int host = 0;                   // the number of this one; host 0 has the head
  std::string hosts_by{};         // what said how many hosts there are, such as "--nnodes"; empty: nothing
  HostAddress head{};             // where the head listens; meaningless for a single host
  std::string secret_file{};      // which is not read; empty for a single host, and where none is named
  std::string run_id{};           // of the job; empty where nothing names one
  std::optional<int> replicas{};  // on this host, where the launcher says it
  // Each host has a run directory of its own. Without it, all hosts share one.
  bool has_separate_folders = false;
};

// The value of an environment variable. Empty where it is not set or has no value.
using Environment = std::function<std::optional<std::string>(const char* name)>;

// Throws Error{invalid_argument} for values that are wrong, missing or contradict each other, and Error{unsupported}
// where a launcher has started several processes on this host: each would become the agent of the host.
Surroundings surroundings_of(const HostOptions& options, const Environment& environment);

// The secret that the hosts share, for a run of several. Throws Error{invalid_argument} where no file is named, and as
// read_secret() does.
Secret secret_of(const Surroundings& surroundings);

}  // namespace holdfast::recovery
