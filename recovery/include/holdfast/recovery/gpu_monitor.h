#pragma once

// What NVIDIA's driver reports about the GPUs of this machine and their health. The driver is asked through its
// management library (NVML), which is loaded at run time. No context is made on any device, and no setting is changed.
// A value that the driver does not know, or does not report, is empty.
//
//   const GpuSurvey survey = survey_gpus(Deadline::after(std::chrono::seconds(10)));
//   for (const GpuFacts& gpu : survey.devices) std::printf("%d %s\n", gpu.index, gpu.name.c_str());

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/base/deadline.h"

namespace holdfast::recovery {

// One device, at the moment of the survey.
struct GpuFacts {
  int index = 0;                                     // the driver's number; CUDA's may differ, see cuda_order()
  std::string problem{};                             // why nothing else is known: the device is lost, or needs a reset
  std::string name{};                                // "NVIDIA H200"
  std::string uuid{};                                // "GPU-..."
  std::string pci_bus_id{};                          // "00000000:1B:00.0"
  std::optional<int> major{};                        // compute capability
  std::optional<int> minor{};                        // of the compute capability
  std::optional<std::uint64_t> memory_bytes{};       // of the device
  std::optional<std::uint64_t> used_memory_bytes{};  // by all processes
  std::optional<int> temperature_celsius{};          // of the device
  std::optional<double> power_watts{};               // at this moment
  std::optional<double> power_limit_watts{};         // the power that the driver allows
  std::optional<int> utilization_percent{};          // of the time, as the driver samples it
  // Whether instances (MIG) are what processes can use today; a mode that comes with the next reset does not count.
  std::optional<bool> is_split{};
  std::vector<std::string> instances{};  // UUIDs ("MIG-...") of the instances that this process may see

  // Why the clocks are lower than they could be: "power limit", "hardware slowdown", "temperature (software)",
  // "temperature (hardware)" or "external power brake". An idle device has no reason here.
  std::optional<std::vector<std::string>> slowdowns{};

  std::optional<bool> has_ecc{};                           // memory has error correction, and it is on
  std::optional<std::uint64_t> uncorrected_errors{};       // since the driver was loaded
  std::optional<std::uint64_t> uncorrected_errors_ever{};  // of the device's whole life
  std::optional<bool> is_retirement_pending{};             // memory failed, and is retired with the next reset
  std::optional<bool> has_retirement_failed{};             // no spare memory is left to replace it

  std::optional<int> link_generation{};      // of PCI Express; an idle device may have a lower one than a busy one
  std::optional<int> max_link_generation{};  // that device and slot allow
  std::optional<int> link_width{};           // lanes
  std::optional<int> max_link_width{};       // that device and slot allow
};

// Whether one device can read the memory of another. `from` and `to` are indices of the driver, and `from` is the lower
// one: each pair is asked for in one direction.
struct PeerAccess {
  int from = 0;                       // the device that reads
  int to = 0;                         // the device whose memory is read
  std::optional<bool> is_possible{};  // empty: the driver does not say
  std::string why_not{};              // the driver's reason
};

// What the driver says about all GPUs of the host.
struct GpuSurvey {
  std::string library{};              // the file of the management library
  std::string library_version{};      // of the management library
  std::string driver_version{};       // of the driver itself
  std::optional<int> cuda_version{};  // the newest CUDA that the driver supports; 13.0 is 13000
  std::vector<GpuFacts> devices{};    // by index
  std::vector<PeerAccess> peers{};    // each pair once
};

// Asks the driver on a thread of its own, because calls of NVML have no deadline. Throws Error{not_found} where there
// is no NVIDIA driver, or where a container lacks this library. Throws Error{unavailable} when the driver does not
// work, and Error{deadline_exceeded} when it has not answered in time. In the last case the thread remains in the
// driver.
//
// The environment variable HOLDFAST_NVML names a library to use instead of libnvidia-ml.so.1.
GpuSurvey survey_gpus(Deadline deadline);

// What CUDA's numbers mean: element n is the driver's index of cuda:n. `visible` is the value of CUDA_VISIBLE_DEVICES,
// null where it is not set: numbers or the beginnings of UUIDs, where all devices after an unknown entry are hidden. An
// instance (MIG) stands for the device that it is a part of. CUDA numbers devices by their position on the PCI bus, as
// the driver does, where they are all alike or CUDA_DEVICE_ORDER is PCI_BUS_ID. This function ignores that drivers show
// a process one instance at most, and no whole device next to it.
std::vector<int> cuda_order(const std::vector<GpuFacts>& devices, const char* visible);
// False where devices of different kinds are numbered by their speed, so that cuda_order() may be wrong. `device_order`
// is the value of CUDA_DEVICE_ORDER, null where it is not set.
bool is_cuda_order_known(const std::vector<GpuFacts>& devices, const char* device_order);

}  // namespace holdfast::recovery
