#pragma once

// What NVIDIA's driver says of the GPUs of this machine and of their health. It is asked through its management
// library, which is loaded where it is there; no context is made on any device, and no setting is changed. What a
// driver does not know, or does not tell, is empty.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/base/deadline.h"

namespace holdfast::recovery {

struct GpuFacts {
  int index = 0;               // the driver's number of it, which CUDA's may differ from: see cuda_order()
  std::string problem{};       // why nothing else is known: it is lost, or needs a reset
  std::string name{};          // "NVIDIA H200"
  std::string uuid{};          // "GPU-..."
  std::string pci_bus_id{};    // "00000000:1B:00.0"
  std::optional<int> major{};  // compute capability
  std::optional<int> minor{};
  std::optional<std::uint64_t> memory_bytes{};
  std::optional<std::uint64_t> used_memory_bytes{};
  std::optional<int> temperature_celsius{};
  std::optional<double> power_watts{};
  std::optional<double> power_limit_watts{};
  std::optional<int> utilization_percent{};
  std::optional<bool> is_split{};        // into instances (MIG)
  std::vector<std::string> instances{};  // "MIG-...": UUIDs of those that this process may see

  // Why its clocks are lower than they could be, but for having nothing to do.
  std::optional<std::vector<std::string>> slowdowns{};

  std::optional<bool> has_ecc{};                           // and it is on
  std::optional<std::uint64_t> uncorrected_errors{};       // since the driver was loaded
  std::optional<std::uint64_t> uncorrected_errors_ever{};  //
  std::optional<bool> is_retirement_pending{};             // of memory that failed: it is retired with the next reset
  std::optional<bool> has_retirement_failed{};             // there is no memory left to replace it

  std::optional<int> link_generation{};  // of PCI Express. Idle devices may have a lower one than when they work
  std::optional<int> max_link_generation{};
  std::optional<int> link_width{};  // lanes
  std::optional<int> max_link_width{};
};

// Whether one device can read the memory of another.
struct PeerAccess {
  int from = 0;
  int to = 0;
  std::optional<bool> is_possible{};
  std::string why_not{};
};

struct GpuSurvey {
  std::string library{};  // the file of the management library
  std::string library_version{};
  std::string driver_version{};
  std::optional<int> cuda_version{};  // the newest CUDA that the driver supports; 13.0 is 13000
  std::vector<GpuFacts> devices{};    // by index
  std::vector<PeerAccess> peers{};    // each pair once
};

// Throws Error{not_found} where there is no NVIDIA driver, or a container has it without this library,
// Error{unavailable} where there is one that does not work, Error{deadline_exceeded} when it has not answered by then;
// the thread that asked stays behind in the driver in that case.
//
// HOLDFAST_NVML in the environment names another library than libnvidia-ml.so.1.
GpuSurvey survey_gpus(Deadline deadline);

// What CUDA's numbers stand for: element n is the index of cuda:n. `visible` is the value of CUDA_VISIBLE_DEVICES, null
// where it is not set: numbers or the beginnings of UUIDs, and all behind one that is unknown are hidden. An instance
// (MIG) stands for the device that it is a part of. CUDA numbers devices by their place on the PCI bus, as the driver
// does, where they are all alike or CUDA_DEVICE_ORDER is PCI_BUS_ID. Not known here: drivers show a process one
// instance at most, and no whole device beside it.
std::vector<int> cuda_order(const std::vector<GpuFacts>& devices, const char* visible);
// False where devices of different kinds are numbered by their speed, so that cuda_order() may be wrong.
bool is_cuda_order_known(const std::vector<GpuFacts>& devices, const char* device_order);

}  // namespace holdfast::recovery
