#pragma once

// Texts that NVML writes into a buffer.

#include <string>

#include "gpu/nvml_library.h"

namespace holdfast::recovery {

// Calls `function` with these arguments and a buffer after them, and returns its text. Empty when it fails.
template <class... Parameters, class... Arguments>
std::string text_of(int (*function)(Parameters...), Arguments... arguments) {
  char text[nvml::kTextBytes] = {};
  const int code = call_nvml(function, arguments..., text, static_cast<unsigned int>(sizeof text - 1));
  return code == nvml::kSuccess ? text : "";
}

}  // namespace holdfast::recovery
