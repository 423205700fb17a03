// A mistake in the list of devices is found before any process starts, and the sentence says what the machine has.
// CPUs and GPUs give different bits, so a run has devices of one kind. docs/decisions/devices.md

#include "train/context/devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "compute/backend.h"
#include "compute/cuda_library.h"
#include "holdfast/base/error.h"

namespace holdfast {
namespace {

// A watchdog sets both, for its processes alone.
constexpr const char* kVariable = "HOLDFAST_DEVICE";
constexpr const char* kVariableOfAll = "HOLDFAST_DEVICES";

// Names of the user, so the number may still be wrong.
bool is_cuda(const std::string& device) {
  return device.starts_with("cuda:");
}

// At most four digits, so that the number fits an int.
bool is_name(const std::string& device) {
  const std::size_t colon = device.find(':');
  if (colon == std::string::npos || (!is_cuda(device) && !device.starts_with("cpu:"))) return false;
  const std::string digits = device.substr(colon + 1);
  return !digits.empty() && digits.size() <= 4 &&
         std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Asking loads the CUDA library, so a run on CPUs never asks.
int cuda_device_count() {
  const int count = static_cast<int>(compute::cuda_library().devices().size());
  if (count > 0) return count;
  throw Error(ErrorCode::unavailable, "there is no CUDA device on this machine; see `holdfast doctor`");
}

void check_names(const std::vector<std::string>& devices) {
  for (const std::string& device : devices) {
    if (!is_name(device)) {
      throw Error(ErrorCode::unavailable,
                  fmt::format("there is no device \"{}\"; devices are named cpu:0, cpu:1, ... and cuda:0, cuda:1, ...",
                              device));
    }
    if (is_cuda(device) != is_cuda(devices.front())) {
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format(
              "devices {} and {} cannot train one model: CPUs and GPUs give different bits; list devices of one kind",
              devices.front(), device));
    }
  }
}

void check_listed(const std::vector<std::string>& devices) {
  check_names(devices);
  if (!is_cuda(devices.front())) return;
  const int count = cuda_device_count();
  for (const std::string& device : devices) {
    if (std::stoi(device.substr(device.find(':') + 1)) < count) continue;
    throw Error(ErrorCode::unavailable,
                fmt::format("there is no device \"{}\" here: the CUDA devices of this machine are cuda:0 to cuda:{}",
                            device, count - 1));
  }
}

// A list wins, and may name a device twice. A number takes each device once.
ReplicaDevices listed_or_counted(const SuperviseOptions& options) {
  if (!options.devices.empty()) {
    if (options.replicas != 0 && static_cast<int>(options.devices.size()) != options.replicas) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{} devices are listed for {} replicas; leave one of the two out", options.devices.size(),
                              options.replicas));
    }
    check_listed(options.devices);
    return {static_cast<int>(options.devices.size()), options.devices};
  }
  // Without names the watchdog divides the cores itself.
  if (options.kind == DeviceKind::cpu) return {options.replicas};
  const int count = cuda_device_count();
  const int replicas = options.replicas == 0 ? count : options.replicas;
  if (replicas > count) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("{} replicas were asked for on {} CUDA devices; list devices, such as cuda:0,cuda:0, to put "
                    "several on one",
                    replicas, count));
  }
  ReplicaDevices devices{replicas};
  for (int device = 0; device < replicas; ++device) devices.names.push_back(fmt::format("cuda:{}", device));
  return devices;
}

}  // namespace

ReplicaDevices devices_of(const SuperviseOptions& options) {
  // The precision is checked last, when it is known what computes.
  ReplicaDevices devices = listed_or_counted(options);
  check_precision(options.precision, devices.are_cuda());
  return devices;
}

void check_device(const std::string& device, Precision precision) {
  if (device != "cpu" && !is_cuda(device)) {
    throw Error(
        ErrorCode::unavailable,
        fmt::format("a process that trains alone has no device \"{}\"; its devices are named cpu, cuda:0, cuda:1, ...",
                    device));
  }
  // "cpu" has no number: a process alone uses all cores.
  if (is_cuda(device)) check_listed({device});
  check_precision(precision, is_cuda(device));
}

void check_precision(Precision precision, bool are_cuda) {
  if (!are_cuda) compute::check_cpu_precision(precision);
}

std::string device_variable(const std::string& device) {
  return fmt::format("{}={}", kVariable, device);
}

// Looks at names alone. Whether the device works shows when it is used; other devices of the list may be lost by now,
// which must not end this process.
void check_given_devices() {
  const char* const own = std::getenv(kVariable);
  const char* const all = std::getenv(kVariableOfAll);
  std::vector<std::string> names;
  if (own != nullptr) names.emplace_back(own);
  std::istringstream list(all == nullptr ? "" : all);
  for (std::string name; std::getline(list, name, ',');) names.push_back(name);
  if (!names.empty()) check_names(names);
}

// Other names are for programs of other kinds under `holdfast run`.
std::string own_device() {
  const char* const device = std::getenv(kVariable);
  return device != nullptr && is_cuda(device) ? device : "cpu";
}

}  // namespace holdfast
