#pragma once

// Texts that NVML writes into a buffer.

#include <string>

#include "gpu/nvml_library.h"

namespace holdfast::recovery {

// What `function` says with these arguments and a buffer behind them; empty where it says nothing.
template <class... Parameters, class... Arguments>
std::string text_of(int (*function)(Parameters...), Arguments... arguments) {
  char text[nvml::kTextBytes] = {};
  const int code = call_nvml(function, arguments..., text, static_cast<unsigned int>(sizeof text - 1));
  return code == nvml::kSuccess ? text : "";
}

}  // namespace holdfast::recovery
