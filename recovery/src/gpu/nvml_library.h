#pragma once

// NVML, NVIDIA's management library, which comes with the driver. It is loaded at run time. The few functions that
// are used are declared here; one that this version lacks is null. None of them changes a setting.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "holdfast/base/shared_library.h"

namespace holdfast::recovery {

// As in nvml.h, whose structures and numbers are stable under the names with these suffixes.
namespace nvml {

using Device = struct DeviceOfTheLibrary*;
using EventSet = struct EventSetOfTheLibrary*;

inline constexpr int kSuccess = 0;
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

// How busy a device was, in percent of the last sampling period.
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
inline constexpr unsigned long long kSoftwarePowerCap = 0x4;
inline constexpr unsigned long long kHardwareSlowdown = 0x8;
inline constexpr unsigned long long kSoftwareThermalSlowdown = 0x20;
inline constexpr unsigned long long kHardwareThermalSlowdown = 0x40;
inline constexpr unsigned long long kPowerBrake = 0x80;

}  // namespace nvml

class NvmlLibrary {
 public:
  // Loads libnvidia-ml.so.1, or the library that HOLDFAST_NVML names. Throws Error{not_found} when it cannot be
  // loaded, Error{unavailable} when it is not NVML.
  static NvmlLibrary load();

  const std::string& path() const { return library_.path(); }

 private:
  // Becomes a pointer to the function of either name, of the type that is asked for; null where both are missing.
  struct Symbol {
    const SharedLibrary& library;
    const char* name;
    const char* other_name;

    template <class Function>
    operator Function*() const {
      Function* const function = library.find<Function>(name);
      return function != nullptr || other_name == nullptr ? function : library.find<Function>(other_name);
    }
  };

  explicit NvmlLibrary(SharedLibrary library) : library_(std::move(library)) {}

  Symbol find(const char* symbol, const char* other = nullptr) const { return {library_, symbol, other}; }

  SharedLibrary library_;  // first: the functions are found in it

 public:
  // Temperatures are in degrees Celsius, power is in milliwatts, and the wait for events takes milliseconds.
  int (*init)() = find("nvmlInit_v2");
  int (*shutdown)() = find("nvmlShutdown");
  const char* (*error_string)(int) = find("nvmlErrorString");
  int (*driver_version)(char*, unsigned int) = find("nvmlSystemGetDriverVersion");
  int (*nvml_version)(char*, unsigned int) = find("nvmlSystemGetNVMLVersion");
  int (*cuda_version)(int*) = find("nvmlSystemGetCudaDriverVersion_v2");
  int (*count)(unsigned int*) = find("nvmlDeviceGetCount_v2");
  int (*handle)(unsigned int, nvml::Device*) = find("nvmlDeviceGetHandleByIndex_v2");
  int (*name)(nvml::Device, char*, unsigned int) = find("nvmlDeviceGetName");
  int (*uuid)(nvml::Device, char*, unsigned int) = find("nvmlDeviceGetUUID");
  int (*pci)(nvml::Device, nvml::Pci*) = find("nvmlDeviceGetPciInfo_v3");
  int (*compute_capability)(nvml::Device, int*, int*) = find("nvmlDeviceGetCudaComputeCapability");
  int (*memory)(nvml::Device, nvml::Memory*) = find("nvmlDeviceGetMemoryInfo");
  int (*temperature)(nvml::Device, int, unsigned int*) = find("nvmlDeviceGetTemperature");
  int (*power)(nvml::Device, unsigned int*) = find("nvmlDeviceGetPowerUsage");
  int (*power_limit)(nvml::Device, unsigned int*) = find("nvmlDeviceGetEnforcedPowerLimit");
  int (*slowdown_reasons)(nvml::Device, unsigned long long*) = find("nvmlDeviceGetCurrentClocksEventReasons",
                                                                    "nvmlDeviceGetCurrentClocksThrottleReasons");
  int (*ecc_mode)(nvml::Device, int*, int*) = find("nvmlDeviceGetEccMode");
  int (*ecc_errors)(nvml::Device, int, int, unsigned long long*) = find("nvmlDeviceGetTotalEccErrors");
  int (*pages_pending)(nvml::Device, int*) = find("nvmlDeviceGetRetiredPagesPendingStatus");
  int (*remapped_rows)(nvml::Device, unsigned int*, unsigned int*, unsigned int*,
                       unsigned int*) = find("nvmlDeviceGetRemappedRows");
  int (*link_generation)(nvml::Device, unsigned int*) = find("nvmlDeviceGetCurrPcieLinkGeneration");
  int (*max_link_generation)(nvml::Device, unsigned int*) = find("nvmlDeviceGetMaxPcieLinkGeneration");
  int (*link_width)(nvml::Device, unsigned int*) = find("nvmlDeviceGetCurrPcieLinkWidth");
  int (*max_link_width)(nvml::Device, unsigned int*) = find("nvmlDeviceGetMaxPcieLinkWidth");
  int (*peer_status)(nvml::Device, nvml::Device, int, int*) = find("nvmlDeviceGetP2PStatus");
  int (*utilization)(nvml::Device, nvml::Utilization*) = find("nvmlDeviceGetUtilizationRates");
  int (*mig_mode)(nvml::Device, unsigned int*, unsigned int*) = find("nvmlDeviceGetMigMode");
  int (*most_instances)(nvml::Device, unsigned int*) = find("nvmlDeviceGetMaxMigDeviceCount");
  int (*instance)(nvml::Device, unsigned int, nvml::Device*) = find("nvmlDeviceGetMigDeviceHandleByIndex");
  int (*event_set_create)(nvml::EventSet*) = find("nvmlEventSetCreate");
  int (*event_set_free)(nvml::EventSet) = find("nvmlEventSetFree");
  int (*supported_events)(nvml::Device, unsigned long long*) = find("nvmlDeviceGetSupportedEventTypes");
  int (*register_events)(nvml::Device, unsigned long long, nvml::EventSet) = find("nvmlDeviceRegisterEvents");
  int (*event_set_wait)(nvml::EventSet, nvml::EventData*, unsigned int) = find("nvmlEventSetWait_v2");
};

// For a function that this version lacks, returns kFunctionNotFound.
template <class... Parameters, class... Arguments>
int call_nvml(int (*function)(Parameters...), Arguments... arguments) {
  return function == nullptr ? nvml::kFunctionNotFound : function(arguments...);
}

// Calls `function` with these arguments and a buffer after them, and returns the text in it. Empty when it fails.
template <class... Parameters, class... Arguments>
std::string text_of(int (*function)(Parameters...), Arguments... arguments) {
  char text[nvml::kTextBytes] = {};
  const int code = call_nvml(function, arguments..., text, static_cast<unsigned int>(sizeof text - 1));
  return code == nvml::kSuccess ? text : "";
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
