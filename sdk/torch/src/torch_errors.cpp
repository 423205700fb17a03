#include "torch_errors.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <string_view>

namespace holdfast::torch {

// LibTorch has one class for all refusals. The word tells an operation without a deterministic form from a mistake in
// the module.
void refuse_as_torch(const char* what, const std::string& said) {
  const bool is_unsupported = said.find("deterministic") != std::string::npos;
  throw Error(
      is_unsupported ? ErrorCode::unsupported : ErrorCode::invalid_argument,
      fmt::format("LibTorch refused {} of the module: {}{}", what, said,
                  is_unsupported ? "; a run that repeats a step needs the same bits, so replace this operation" : ""));
}

void refuse_as_thrown(const char* what, const std::string& said) {
  throw Error(ErrorCode::invalid_argument, fmt::format("{} of the module failed: {}", what, said));
}

// What LibTorch says of a failure of CUDA has the name of the library and of its status, and no code of ours.
static bool says(const std::string& said, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(words, [&](std::string_view word) { return said.find(word) != std::string::npos; });
}

void throw_if_of_device(const char* what, const std::string& said) {
  if (!says(said, {"CUDA error", "CUDA driver error", "CUDNN_STATUS_", "CUBLAS_STATUS_", "CUSOLVER_STATUS_"})) return;
  const std::string first_line = said.substr(0, said.find('\n'));
  if (says(said, {"_NOT_SUPPORTED", "_INVALID_VALUE", "_BAD_PARAM", "invalid argument", "invalid configuration"})) {
    throw Error(ErrorCode::unsupported,
                fmt::format("the device cannot compute {} of the module: {}", what, first_line));
  }
  if (says(said, {"out of memory", "_ALLOC_FAILED"})) throw_out_of_memory(what, first_line);
  if (says(said, {"no kernel image", "driver version is insufficient"})) {
    throw Error(ErrorCode::unavailable,
                fmt::format("LibTorch has nothing for this device or driver, so {} of the module failed: {}", what,
                            first_line));
  }
  // The step is at fault and not the device.
  if (says(said, {"device-side assert"})) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a kernel of LibTorch refused what it was given in {} of the module: {}; look for labels "
                            "and indices out of range, on the CPU, which names them",
                            what, first_line));
  }
  throw Error(
      ErrorCode::device_failed,
      fmt::format("the device failed in {} of the module: {}; this process must be replaced", what, first_line));
}

void throw_out_of_memory(const char* what, const std::string& said) {
  throw Error(ErrorCode::out_of_memory,
              fmt::format("{} of the module found no memory: {}; use smaller batches, or end other programs on the "
                          "device",
                          what, said.substr(0, said.find('\n'))));
}

}  // namespace holdfast::torch
