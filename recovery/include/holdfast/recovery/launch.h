#pragma once

// What `holdfast run -- PROGRAM` needs beside a watchdog: the program is found as a shell would find it, and each of
// its processes gets the environment that launchers of the field give.
//
//   RANK, LOCAL_RANK               that the process is started for. It may have others in later generations, which only
//                                  a program that registers (worker.h) learns of: an environment cannot change
//   WORLD_SIZE, LOCAL_WORLD_SIZE   replicas that there are to be
//   MASTER_ADDR, MASTER_PORT       127.0.0.1, and a port that was free; the same as long as any process of the run
//   lives HOLDFAST_DEVICE                its entry of the list of devices HOLDFAST_RUN_DIRECTORY         absolute

#include <string>
#include <vector>

#include "holdfast/recovery/watchdog.h"

namespace holdfast::recovery {

// Completes options of which `command` is what a user typed. `devices` may hold one several times; empty: cpu:0 and so
// on, one a replica. Where `replicas` is 0 it is taken from WORLD_SIZE if that is set, else from the devices, else
// there is one for each core.
//
// Obeys the environment of this process: MASTER_PORT is kept. With RANK in it, another launcher started this process:
// then WORLD_SIZE must be 1.
//
// Throws Error{not_found} for a program that is not there, Error{invalid_argument}, Error{unsupported} under a launcher
// that started several processes.
WatchdogOptions for_any_program(WatchdogOptions options, std::vector<std::string> devices);

// The cores that this process may run on.
int core_count();

}  // namespace holdfast::recovery
