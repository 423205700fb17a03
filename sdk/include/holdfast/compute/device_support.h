#pragma once

// Tells whether this program can train on CUDA devices, and what is missing if it cannot. `holdfast
// doctor` prints the answer.

#include <string>
#include <vector>

namespace holdfast {

// `devices` is empty if there is a problem.
struct CudaSupport {
  std::string problem{};               // empty: it can
  std::vector<std::string> devices{};  // names, by CUDA's numbers
};

// Loads the CUDA back end and lists the devices that it sees, without a context on any of them. Does
// not throw Error: `problem` says what went wrong.
CudaSupport look_for_cuda();

}  // namespace holdfast
