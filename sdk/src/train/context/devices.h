#pragma once

// Which devices a run's replicas compute on, and how a replica's process learns its own.

#include <string>
#include <vector>

#include "holdfast/train/supervise.h"

namespace holdfast {

struct ReplicaDevices {
  int replicas = 0;                  // as asked for, whether or not so many are possible; 0: one for each core
  std::vector<std::string> names{};  // one for each replica; empty: whatever cores are free

  bool are_cuda() const { return !names.empty() && names.front().starts_with("cuda:"); }
};

// Throws Error: invalid_argument for what does not fit together, unavailable for devices that are not there.
ReplicaDevices devices_of(const SuperviseOptions& options);

// The same for one process alone, on "cpu" or a device.
void check_device(const std::string& device, Precision precision);

// Throws Error{invalid_argument} where these devices cannot compute so.
void check_precision(Precision precision, bool are_cuda);

// What the watchdog puts into the environment of a process that computes on `device`, and what that reads there:
// "cuda:1", else "cpu".
std::string device_variable(const std::string& device);
std::string own_device();
// Of a process that another program's watchdog started, as `holdfast run` does, which takes any names: throws
// Error{unavailable} for those that are none of the SDK's, invalid_argument where CPUs and GPUs are to train together.
void check_given_devices();

}  // namespace holdfast
