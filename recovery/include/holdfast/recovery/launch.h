#pragma once

// What `holdfast run -- PROGRAM` needs besides a watchdog. The program is found as a shell would find it. Each of its
// processes gets the environment that the field's launchers give:
//
//   RANK, LOCAL_RANK               the rank that the process is started for, in the run and among the processes of its
//                                  host. Its rank may change in later generations; only a program that registers
//                                  (worker.h) learns of that. Those of a spare are at least the numbers below, and no
//                                  two living processes of a host have one local rank
//   WORLD_SIZE, LOCAL_WORLD_SIZE   the number of replicas that there are to be, in the run and, as planned, on this
//   host MASTER_ADDR, MASTER_PORT       127.0.0.1, and a port that was free; the same while any process of the run
//   lives HOLDFAST_DEVICE                the entry of the process in the list of devices HOLDFAST_DEVICES that list,
//   with commas HOLDFAST_RUN_DIRECTORY         an absolute path
//
//   run_watchdog(for_any_program({.replicas = 2, .run_directory = "run", .command = {"python", "train.py"}}, {}));

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/recovery/watchdog_options.h"

namespace holdfast::recovery {

// Which of several hosts this process is on, as a user says it; what is empty is taken from the environment, where
// torchrun, Kubeflow, Slurm, Open MPI and others say it.
struct HostFlags {
  std::optional<int> nnodes{};          // the number of hosts; 1: this host alone, whatever the environment says
  std::optional<int> node_rank{};       // of this host, from 0
  std::optional<std::string> head{};    // HOST:PORT, where the host of rank 0 listens
  std::optional<std::string> secret{};  // the file with the secret that all hosts share
  std::chrono::milliseconds head_timeout = std::chrono::minutes(1);  // for a head that was lost to come back
  bool separate_run_dirs = false;  // each host has a run directory of its own; otherwise all share one
};

// Completes options whose `command` is what a user typed. `devices` may list a device several times; empty: cpu:0 and
// so on, one for each replica. Where `replicas` is 0 it is taken from WORLD_SIZE if that is set, otherwise from the
// devices, otherwise there is one for each core.
//
// Obeys the environment of this process: MASTER_PORT is kept. RANK means that another launcher started this process;
// WORLD_SIZE must be 1 then, unless `hosts.nnodes` is.
//
// Throws Error{not_found} for a program that is not there, Error{invalid_argument}, and Error{unsupported} under a
// launcher that started several processes, on this host or on several: run_program() is for those (run_program.h).
WatchdogOptions for_any_program(WatchdogOptions options, std::vector<std::string> devices, const HostFlags& hosts = {});

// The beginning of a sentence, such as "PET_NNODES says that the run has 2 hosts, of which this is number 1"; empty
// where `flags` and the environment of this process say that there is one host. Throws Error{invalid_argument} for
// values that are wrong or contradict each other.
std::string who_says_several_hosts(const HostFlags& flags = {});

}  // namespace holdfast::recovery
