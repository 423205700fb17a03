#pragma once

// One pass of a convolution on cuDNN's graph API, made for one shape. All arrays are as callers have them: engines for
// images with the channels last take our kernels, [height, width, channel, filter], by their strides, and padding that
// differs in front and behind (asked of cuDNN 9.19 for an H200, 2026-11).
//
// The engine is the first of those that the library's heuristic names, and then of its fallback, that gives the same
// bits each time at the precision asked for: it depends on shape, device and library, on no timing.

#include <array>
#include <optional>

#include "compute/cuda/cuda_convolution.h"
#include "compute/cuda/cudnn_descriptor.h"

namespace holdfast::compute {

enum class ConvolutionPass { forward, backward_input, backward_weights };

struct CudnnConvolutionArrays {
  const void* images = nullptr;   // input, or its gradient
  const void* kernel = nullptr;   // or its gradient
  const void* outputs = nullptr;  // or their gradient
};

// What a plan is made for.
struct CudnnTarget {
  cudnnHandle_t handle = nullptr;                // of the device that it will run on; or, null,
  const CudnnDescriptor* description = nullptr;  // a description of one that need not be there, since cuDNN 9.8
};

class CudnnConvolution {
 public:
  // Nothing where the library has no such engine for the shape.
  static std::optional<CudnnConvolution> find(const CudnnTarget& target, Precision precision,
                                              const ConvolutionShape& shape, ConvolutionPass pass);

  std::size_t workspace_bytes() const { return workspace_bytes_; }
  const std::string& engine() const { return engine_; }  // "engine 12"

  // In a turn of the context whose handle the target has. The pass's result is written, whatever the pointer's type
  // says.
  void run(CudaContext& context, const CudnnConvolutionArrays& arrays, std::byte* workspace) const;

 private:
  // Whatever a plan was made of is kept with it.
  struct Graph {
    Graph(const CudnnTarget& target, const std::string& operation, const ConvolutionShape& shape, ConvolutionPass pass);

    CudnnDescriptor images;
    CudnnDescriptor kernel;
    CudnnDescriptor outputs;
    CudnnDescriptor convolution;
    CudnnDescriptor operation;
    CudnnDescriptor graph;
  };

  CudnnConvolution(const std::string& operation, const ConvolutionShape& shape, std::unique_ptr<Graph> graph);

  bool choose_engine(const CudnnTarget& target, Precision precision, cudnnBackendHeurMode_t mode);
  bool take(const CudnnTarget& target, Precision precision, CudnnDescriptor configuration);

  std::string operation_;
  std::array<std::int64_t, 3> alignments_;  // of images, kernel and outputs, in bytes
  std::unique_ptr<Graph> graph_;
  std::optional<CudnnDescriptor> configuration_;
  std::optional<CudnnDescriptor> plan_;
  std::size_t workspace_bytes_ = 0;
  std::string engine_;
};

}  // namespace holdfast::compute
