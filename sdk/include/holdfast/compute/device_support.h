#pragma once

// Whether this program can train on CUDA devices, and what is missing where it cannot.

#include <string>
#include <vector>

namespace holdfast {

struct CudaSupport {
  std::string problem{};               // empty: it can
  std::vector<std::string> devices{};  // names, by CUDA's numbers
};

// Loads the CUDA back end and has it list its devices; makes no context on them. Never throws Error.
CudaSupport look_for_cuda();

}  // namespace holdfast
