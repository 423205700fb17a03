// Devices that the driver has lost stay in the list, without a handle. Otherwise the numbers of the others would
// shift.
#include "gpu/nvml_devices.h"

#include <algorithm>

#include <fmt/format.h>

#include "holdfast/base/error.h"

namespace holdfast::recovery {
namespace {

int count_devices(const NvmlSession& nvml) {
  unsigned int count = 0;
  const int code = nvml->count(&count);
  if (code == nvml::kSuccess) return static_cast<int>(count);
  throw Error(ErrorCode::unavailable, fmt::format("the NVIDIA driver does not say how many devices there are: \"{}\"; "
                                                  "look for NVRM in the kernel's log (dmesg)",
                                                  describe_nvml_error(nvml.library(), code)));
}

// Instances have handles of their own, which the calls for name and UUID accept. Their numbers have gaps.
std::vector<std::string> instances_of(const NvmlSession& nvml, nvml::Device device) {
  std::vector<std::string> uuids;
  unsigned int most = 0;
  if (call_nvml(nvml->most_instances, device, &most) != nvml::kSuccess) return uuids;
  for (unsigned int number = 0; number < most; ++number) {
    nvml::Device instance = nullptr;
    if (call_nvml(nvml->instance, device, number, &instance) != nvml::kSuccess) continue;
    uuids.push_back(text_of(nvml->uuid, instance));
  }
  return uuids;
}

// What identifies a device is asked for once, so that a device that is lost later can still be named.
NvmlDevice identify(const NvmlSession& nvml, int index) {
  NvmlDevice device{.facts = {.index = index}};
  const int code = nvml->handle(static_cast<unsigned int>(index), &device.handle);
  if (code != nvml::kSuccess) {
    // NVML may have written into it although it failed.
    device.handle = nullptr;
    device.facts.problem = describe_nvml_error(nvml.library(), code);
    return device;
  }
  device.facts.name = text_of(nvml->name, device.handle);
  device.facts.uuid = text_of(nvml->uuid, device.handle);
  nvml::Pci pci;
  if (call_nvml(nvml->pci, device.handle, &pci) == nvml::kSuccess) {
    // The text may fill its array, without a zero at its end.
    device.facts.pci_bus_id.assign(pci.bus_id, std::find(pci.bus_id, pci.bus_id + sizeof pci.bus_id, '\0'));
  }
  device.facts.instances = instances_of(nvml, device.handle);
  return device;
}

}  // namespace

std::vector<NvmlDevice> find_devices(const NvmlSession& nvml) {
  std::vector<NvmlDevice> devices;
  const int count = count_devices(nvml);
  for (int index = 0; index < count; ++index) devices.push_back(identify(nvml, index));
  return devices;
}

}  // namespace holdfast::recovery
