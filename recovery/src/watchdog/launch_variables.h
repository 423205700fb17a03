#pragma once

// What launch.h completes, in parts: for the host of a run over several.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/recovery/launch.h"
#include "holdfast/recovery/watchdog.h"
#include "hosts/surroundings.h"

namespace holdfast::recovery {

// Which host this process is on, from the flags and the environment of this process.
Surroundings surroundings_from(const HostFlags& flags);

// The options of one host of a run over several: as for_any_program(), but for the variables of processes. `replicas`
// is what a launcher says of this host. Its run directory is absolute.
WatchdogOptions complete_for_a_host(WatchdogOptions options, std::vector<std::string> devices,
                                    std::optional<int> replicas);

// A path that cannot be made absolute is returned unchanged: no run can begin in it.
std::string absolute_path(const std::string& path);

// The digest of the file of a program, which all hosts must have alike. Throws Error of the file system.
std::string digest_of_program(const std::string& path);

// WatchdogOptions::variables_of where each of `hosts` has `devices`. Without MASTER_ADDR and MASTER_PORT: a port of the
// host of rank 0 would be needed.
std::function<std::vector<std::string>(const NewProcess&)> variables_on_hosts(std::vector<std::string> devices,
                                                                              int hosts, std::string run_directory);

}  // namespace holdfast::recovery
