#pragma once

// Which devices a run's replicas compute on, and how the process of a replica learns which one is its own.

#include <string>
#include <vector>

#include "holdfast/train/supervise_options.h"

namespace holdfast {

struct ReplicaDevices {
  int replicas = 0;                  // as asked for, even if the host has too few cores; 0: one for each core
  std::vector<std::string> names{};  // one for each replica; empty: the CPU's cores

  bool are_cuda() const { return !names.empty() && names.front().starts_with("cuda:"); }
};

// The devices that `options` ask for. Throws Error{invalid_argument} for options that contradict each other, and
// Error{unavailable} for devices that this machine does not have.
ReplicaDevices devices_of(const SuperviseOptions& options);

// The same checks for a process that trains alone, on "cpu" or a CUDA device.
void check_device(const std::string& device, Precision precision);

// Throws Error{invalid_argument} for a precision in which these devices do not compute, and Error{unavailable} if the
// CPU of this machine lacks the instructions for it.
void check_precision(Precision precision, bool are_cuda);

// The line that the watchdog adds to the environment of a process that computes on `device`: NAME=VALUE.
std::string device_variable(const std::string& device);
// The device that this line gave the process, such as "cuda:1"; "cpu" for a CPU, or without such a line.
std::string own_device();
// For a process that the watchdog of another program started: `holdfast run` accepts any names of devices. Throws
// Error{unavailable} for a name that the SDK does not know, and Error{invalid_argument} for CPUs and GPUs in one run.
void check_given_devices();

}  // namespace holdfast
