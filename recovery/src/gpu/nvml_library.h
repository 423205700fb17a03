#pragma once

// NVML, NVIDIA's management library, which comes with the driver. It is loaded at run time. The few functions that
// are used are declared here; one that this version lacks is null. None of them changes a setting.

#include <cstdint>
#include <memory>
#include <string>

#include "holdfast/base/shared_library.h"

namespace holdfast::recovery {

// As in nvml.h, whose structures and numbers are stable under the names with these suffixes.
namespace nvml {

using Device = struct DeviceOfTheLibrary*;
using EventSet = struct EventSetOfTheLibrary*;

inline constexpr int kSuccess = 0;
inline constexpr int kNotSupported = 3;
inline constexpr int kDriverNotLoaded = 9;
inline constexpr int kTimeout = 10;
inline constexpr int kFunctionNotFound = 13;
inline constexpr int kGpuIsLost = 15;
inline constexpr int kResetRequired = 16;
inline constexpr int kVersionMismatch = 18;

inline constexpr int kTemperatureOfTheGpu = 0;
inline constexpr int kTextBytes = 96;  // the longest text that any version writes: a UUID or a name

// All three in bytes.
struct Memory {
  unsigned long long total = 0;
  unsigned long long free = 0;
  unsigned long long used = 0;
};

// The layout of nvmlPciInfo_t. Only bus_id is read; the members before it keep its offset.
struct Pci {
  char short_bus_id[16] = {};
  unsigned int domain = 0;
  unsigned int bus = 0;
  unsigned int device = 0;
  unsigned int device_id = 0;
  unsigned int subsystem_id = 0;
  char bus_id[32] = {};
};

// In percent of the last sampling period.
struct Utilization {
  unsigned int gpu = 0;
  unsigned int memory = 0;
};

struct EventData {
  Device device = nullptr;
  unsigned long long type = 0;
  unsigned long long data = 0;  // the Xid
  unsigned int gpu_instance = 0;
  unsigned int compute_instance = 0;
};

inline constexpr unsigned long long kDoubleBitEccError = 0x2;
inline constexpr unsigned long long kXidCriticalError = 0x8;

// Bits of the reasons for which a device runs slower than it could. An idle device is not slowed down.
inline constexpr unsigned long long kGpuIdle = 0x1;
inline constexpr unsigned long long kSoftwarePowerCap = 0x4;
inline constexpr unsigned long long kHardwareSlowdown = 0x8;
inline constexpr unsigned long long kSoftwareThermalSlowdown = 0x20;
inline constexpr unsigned long long kHardwareThermalSlowdown = 0x40;
inline constexpr unsigned long long kPowerBrake = 0x80;

}  // namespace nvml

struct NvmlLibrary {
  // Loads libnvidia-ml.so.1, or the library that HOLDFAST_NVML names. Throws Error{not_found} when it cannot be
  // loaded, Error{unavailable} when it is not NVML.
  static NvmlLibrary load();

  std::string path{};

  // Each pointer is the function of a similar name in nvml.h. Temperatures are in degrees Celsius, power is in
  // milliwatts, and the wait for events takes milliseconds.
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  const char* (*error_string)(int) = nullptr;
  int (*driver_version)(char*, unsigned int) = nullptr;
  int (*nvml_version)(char*, unsigned int) = nullptr;
  int (*cuda_version)(int*) = nullptr;
  int (*count)(unsigned int*) = nullptr;
  int (*handle)(unsigned int, nvml::Device*) = nullptr;
  int (*name)(nvml::Device, char*, unsigned int) = nullptr;
  int (*uuid)(nvml::Device, char*, unsigned int) = nullptr;
  int (*pci)(nvml::Device, nvml::Pci*) = nullptr;
  int (*compute_capability)(nvml::Device, int*, int*) = nullptr;
  int (*memory)(nvml::Device, nvml::Memory*) = nullptr;
  int (*temperature)(nvml::Device, int, unsigned int*) = nullptr;
  int (*power)(nvml::Device, unsigned int*) = nullptr;
  int (*power_limit)(nvml::Device, unsigned int*) = nullptr;
  int (*slowdown_reasons)(nvml::Device, unsigned long long*) = nullptr;
  int (*ecc_mode)(nvml::Device, int*, int*) = nullptr;
  int (*ecc_errors)(nvml::Device, int, int, unsigned long long*) = nullptr;
  int (*pages_pending)(nvml::Device, int*) = nullptr;
  int (*remapped_rows)(nvml::Device, unsigned int*, unsigned int*, unsigned int*, unsigned int*) = nullptr;
  int (*link_generation)(nvml::Device, unsigned int*) = nullptr;
  int (*max_link_generation)(nvml::Device, unsigned int*) = nullptr;
  int (*link_width)(nvml::Device, unsigned int*) = nullptr;
  int (*max_link_width)(nvml::Device, unsigned int*) = nullptr;
  int (*peer_status)(nvml::Device, nvml::Device, int, int*) = nullptr;
  int (*utilization)(nvml::Device, nvml::Utilization*) = nullptr;
  int (*mig_mode)(nvml::Device, unsigned int*, unsigned int*) = nullptr;
  int (*most_instances)(nvml::Device, unsigned int*) = nullptr;
  int (*instance)(nvml::Device, unsigned int, nvml::Device*) = nullptr;
  int (*event_set_create)(nvml::EventSet*) = nullptr;
  int (*event_set_free)(nvml::EventSet) = nullptr;
  int (*supported_events)(nvml::Device, unsigned long long*) = nullptr;
  int (*register_events)(nvml::Device, unsigned long long, nvml::EventSet) = nullptr;
  int (*event_set_wait)(nvml::EventSet, nvml::EventData*, unsigned int) = nullptr;
};

// For a function that this version lacks, returns kFunctionNotFound.
template <class... Parameters, class... Arguments>
int call_nvml(int (*function)(Parameters...), Arguments... arguments) {
  return function == nullptr ? nvml::kFunctionNotFound : function(arguments...);
}

// "GPU is lost", otherwise "error 15".
std::string describe_nvml_error(const NvmlLibrary& library, int code);

// A session of NVML, from initialisation to shutdown. Calls may block as long as the driver does.
class NvmlSession {
 public:
  // Throws as NvmlLibrary::load(), and Error{unavailable} when the driver does not answer.
  NvmlSession();
  ~NvmlSession();
  NvmlSession(const NvmlSession&) = delete;
  NvmlSession& operator=(const NvmlSession&) = delete;

  const NvmlLibrary& library() const { return library_; }
  const NvmlLibrary* operator->() const { return &library_; }

 private:
  NvmlLibrary library_;
};

}  // namespace holdfast::recovery
