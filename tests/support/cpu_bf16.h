#pragma once

// For tests of bf16 on CPUs, which skip where the machine has no instructions for it.

#include <gtest/gtest.h>

#include "compute/backend.h"
#include "holdfast/base/error.h"

namespace holdfast {

// Why this machine's CPU cannot compute in bf16; empty if it can.
inline std::string obstacle_of_bf16() {
  try {
    compute::check_cpu_precision(Precision::bf16);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

}  // namespace holdfast
