#pragma once

// cuDNN's graph API in the host's memory, as far as convolutions ask for it. Of the strides of kernels it makes what
// the library makes of them: nothing. A kernel for images with the channels last is taken to be [filter, row, column,
// channel]. What an array may not be relied on for (its alignment, the library's own part of the workspace) is checked
// or spoilt.

#include <cudnn_graph.h>

#include <cstdint>
#include <vector>

namespace holdfast::host_cudnn {

struct Engine {
  std::int64_t index = 0;
  std::vector<cudnnBackendNumericalNote_t> numerical_notes{};
  std::vector<cudnnBackendBehaviorNote_t> behavior_notes{};
  cudnnStatus_t plan = CUDNN_STATUS_SUCCESS;  // what making a plan of it ends with
  std::int64_t workspace_bytes = 1000;        // that it asks for, and fills
};

struct Library {
  std::vector<Engine> engines = {Engine{.index = 1}};  // as the heuristic names them
  std::vector<Engine> fallback{};                      // as it names them when nothing else serves
  bool was_misled = false;                             // by an alignment that an array does not have
  std::vector<std::int64_t> executions{};              // of which engine
};

// The only one.
Library& library();

}  // namespace holdfast::host_cudnn
