// NVML is loaded at run time, because a program must also start where there is no driver. Functions that a driver's
// version lacks stay null. docs/decisions/devices.md

#include "gpu/nvml_library.h"

#include <cstdlib>

#include <fmt/format.h>

#include "holdfast/base/error.h"

namespace holdfast::recovery {
namespace {

constexpr const char* kLibraryName = "libnvidia-ml.so.1";
// Lets tests give a library of their own, which reports devices and errors that no test machine has.
constexpr const char* kLibraryVariable = "HOLDFAST_NVML";

template <class Function>
void find(const SharedLibrary& library, const char* name, Function*& function) {
  function = library.find<Function>(name);
}

// Newer drivers prefer this second name of the same function.
void find_slowdown_reasons(const SharedLibrary& library, NvmlLibrary& functions) {
  find(library, "nvmlDeviceGetCurrentClocksEventReasons", functions.slowdown_reasons);
  if (functions.slowdown_reasons != nullptr) return;
  find(library, "nvmlDeviceGetCurrentClocksThrottleReasons", functions.slowdown_reasons);
}

void find_facts_of_devices(const SharedLibrary& library, NvmlLibrary& functions) {
  find(library, "nvmlDeviceGetName", functions.name);
  find(library, "nvmlDeviceGetUUID", functions.uuid);
  find(library, "nvmlDeviceGetPciInfo_v3", functions.pci);
  find(library, "nvmlDeviceGetCudaComputeCapability", functions.compute_capability);
  find(library, "nvmlDeviceGetMemoryInfo", functions.memory);
  find(library, "nvmlDeviceGetTemperature", functions.temperature);
  find(library, "nvmlDeviceGetPowerUsage", functions.power);
  find(library, "nvmlDeviceGetEnforcedPowerLimit", functions.power_limit);
  find_slowdown_reasons(library, functions);
  find(library, "nvmlDeviceGetEccMode", functions.ecc_mode);
  find(library, "nvmlDeviceGetTotalEccErrors", functions.ecc_errors);
  find(library, "nvmlDeviceGetRetiredPagesPendingStatus", functions.pages_pending);
  find(library, "nvmlDeviceGetRemappedRows", functions.remapped_rows);
  find(library, "nvmlDeviceGetCurrPcieLinkGeneration", functions.link_generation);
  find(library, "nvmlDeviceGetMaxPcieLinkGeneration", functions.max_link_generation);
  find(library, "nvmlDeviceGetCurrPcieLinkWidth", functions.link_width);
  find(library, "nvmlDeviceGetMaxPcieLinkWidth", functions.max_link_width);
  find(library, "nvmlDeviceGetP2PStatus", functions.peer_status);
  find(library, "nvmlDeviceGetUtilizationRates", functions.utilization);
  find(library, "nvmlDeviceGetMigMode", functions.mig_mode);
  find(library, "nvmlDeviceGetMaxMigDeviceCount", functions.most_instances);
  find(library, "nvmlDeviceGetMigDeviceHandleByIndex", functions.instance);
}

void find_events(const SharedLibrary& library, NvmlLibrary& functions) {
  find(library, "nvmlEventSetCreate", functions.event_set_create);
  find(library, "nvmlEventSetFree", functions.event_set_free);
  find(library, "nvmlDeviceGetSupportedEventTypes", functions.supported_events);
  find(library, "nvmlDeviceRegisterEvents", functions.register_events);
  find(library, "nvmlEventSetWait_v2", functions.event_set_wait);
}

SharedLibrary load_library() {
  const char* const other = std::getenv(kLibraryVariable);
  try {
    return SharedLibrary::load(other == nullptr || *other == '\0' ? kLibraryName : other);
  } catch (const Error& error) {
    throw Error(ErrorCode::not_found, fmt::format("there is no NVIDIA driver, or a container was started without its "
                                                  "management library, which cannot be loaded ({})",
                                                  error.what()));
  }
}

std::string remedy_for(int code) {
  switch (code) {
    case nvml::kDriverNotLoaded:
      return "load the kernel module (modprobe nvidia), or start the container with its GPUs (--gpus all)";
    case nvml::kVersionMismatch:
      return "the driver was updated while its kernel module was in use; restart the machine";
    default:
      return "look for NVRM in the kernel's log (dmesg)";
  }
}

}  // namespace

NvmlLibrary NvmlLibrary::load() {
  const SharedLibrary library = load_library();
  NvmlLibrary functions;
  functions.path = library.path();
  find(library, "nvmlInit_v2", functions.init);
  find(library, "nvmlShutdown", functions.shutdown);
  find(library, "nvmlErrorString", functions.error_string);
  find(library, "nvmlSystemGetDriverVersion", functions.driver_version);
  find(library, "nvmlSystemGetNVMLVersion", functions.nvml_version);
  find(library, "nvmlSystemGetCudaDriverVersion_v2", functions.cuda_version);
  find(library, "nvmlDeviceGetCount_v2", functions.count);
  find(library, "nvmlDeviceGetHandleByIndex_v2", functions.handle);
  find_facts_of_devices(library, functions);
  find_events(library, functions);
  // Nothing can be asked without these three. Every other function may be missing.
  if (functions.init != nullptr && functions.count != nullptr && functions.handle != nullptr) return functions;
  throw Error(ErrorCode::unavailable,
              functions.path + " is not NVML, or belongs to a driver older than 319; install a newer NVIDIA driver");
}

std::string describe_nvml_error(const NvmlLibrary& library, int code) {
  const char* const text = library.error_string == nullptr ? nullptr : library.error_string(code);
  return text == nullptr ? fmt::format("error {}", code) : text;
}

NvmlSession::NvmlSession() : library_(NvmlLibrary::load()) {
  const int code = library_.init();
  if (code == nvml::kSuccess) return;
  throw Error(ErrorCode::unavailable,
              fmt::format("the NVIDIA driver does not answer: nvmlInit_v2 of {} says \"{}\"; {}", library_.path,
                          describe_nvml_error(library_, code), remedy_for(code)));
}

NvmlSession::~NvmlSession() {
  // NVML counts its initialisations, so a program that uses it as well keeps its own session.
  if (library_.shutdown != nullptr) library_.shutdown();
}

}  // namespace holdfast::recovery
