#pragma once

// The part of cuDNN's graph API that convolutions need, in the host's memory. Like the library, it ignores the strides
// of kernels: with images that have the channels last, a kernel counts as [filter, row, column, channel]. It checks the
// alignment of arrays, and overwrites the library's part of the workspace.

#include <cudnn_graph.h>

#include <cstdint>
#include <vector>

namespace holdfast::host_cudnn {

struct Engine {
  std::int64_t index = 0;
  std::vector<cudnnBackendNumericalNote_t> numerical_notes{};
  std::vector<cudnnBackendBehaviorNote_t> behavior_notes{};
  cudnnStatus_t plan = CUDNN_STATUS_SUCCESS;  // the result of making a plan of it
  std::int64_t workspace_bytes = 1000;        // that it needs, and overwrites
};

struct Library {
  std::vector<Engine> engines = {Engine{.index = 1}};  // in the heuristic's order
  std::vector<Engine> fallback{};                      // the engines of the fallback
  bool was_misled = false;                             // an array lacked the alignment that was declared
  std::vector<std::int64_t> executions{};              // the engine of each execution
};

// There is one library in the process.
Library& library();

}  // namespace holdfast::host_cudnn
