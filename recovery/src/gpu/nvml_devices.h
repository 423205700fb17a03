#pragma once

// The devices of NVML, with what identifies them.

#include <vector>

#include "gpu/nvml_library.h"
#include "holdfast/recovery/gpu_monitor.h"

namespace holdfast::recovery {

struct NvmlDevice {
  nvml::Device handle = nullptr;  // null for a lost device
  GpuFacts facts{};               // index, problem, name, uuid, pci_bus_id and instances
};

// The devices by their index. Throws Error{unavailable} when the driver does not say how many devices there are.
std::vector<NvmlDevice> find_devices(const NvmlSession& nvml);

}  // namespace holdfast::recovery
