// NVML is loaded at run time, because a program must also start where there is no driver. Functions that a driver's
// version lacks stay null. docs/decisions/failing-devices.md

#include "gpu/nvml_library.h"

#include <cstdlib>

#include <fmt/format.h>

#include "holdfast/base/error.h"

namespace holdfast::recovery {
namespace {

constexpr const char* kLibraryName = "libnvidia-ml.so.1";
// Lets tests give a library of their own, which reports devices and errors that no test machine has.
constexpr const char* kLibraryVariable = "HOLDFAST_NVML";

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
  NvmlLibrary loaded(load_library());
  // Nothing can be asked without these three. Every other function may be missing.
  if (loaded.init != nullptr && loaded.count != nullptr && loaded.handle != nullptr) return loaded;
  throw Error(ErrorCode::unavailable,
              fmt::format("{} is not NVML, or belongs to a driver older than 319; install a newer NVIDIA driver",
                          loaded.path()));
}

std::string describe_nvml_error(const NvmlLibrary& library, int code) {
  const char* const text = library.error_string == nullptr ? nullptr : library.error_string(code);
  return text == nullptr ? fmt::format("error {}", code) : text;
}

NvmlSession::NvmlSession() : library_(NvmlLibrary::load()) {
  const int code = library_.init();
  if (code == nvml::kSuccess) return;
  throw Error(ErrorCode::unavailable,
              fmt::format("the NVIDIA driver does not answer: nvmlInit_v2 of {} says \"{}\"; {}", library_.path(),
                          describe_nvml_error(library_, code), remedy_for(code)));
}

NvmlSession::~NvmlSession() {
  // NVML counts its initialisations, so a program that uses it as well keeps its own session.
  if (library_.shutdown != nullptr) library_.shutdown();
}

}  // namespace holdfast::recovery
