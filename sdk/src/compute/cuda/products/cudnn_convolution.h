#pragma once

// One pass of a convolution on cuDNN's graph API, made for one shape. Images are as callers have them. Our kernels,
// [height, width, channel, filter], have an order of axes that the library does not know: each run copies them into the
// workspace, or their gradient out of it, as [filter, height, width, channel].
//
// At Precision::bf16 each run rounds what it reads into the workspace, and has the library write there, in bf16, too:
// sums are f32, and rounded once when they are complete. They are widened on their way out.
//
// The engine is the first of those that the library's heuristic names, and then of its fallback, that gives the same
// bits each time at the precision asked for, and that need not be compiled first, which a machine may lack the compiler
// for: it depends on shape, device and library, on no timing. Its workspace may be as large as copies of the images.

#include <array>
#include <optional>

#include "compute/cuda/kernels/columns.h"
#include "compute/cuda/products/cuda_convolution.h"
#include "compute/cuda/products/cudnn_descriptor.h"

namespace holdfast::compute {

enum class ConvolutionPass { forward, backward_input, backward_weights };

struct CudnnConvolutionArrays {
  const float* images = nullptr;   // input, or its gradient
  const float* kernel = nullptr;   // or its gradient
  const float* outputs = nullptr;  // or their gradient
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

  std::size_t workspace_bytes() const;
  const std::string& engine() const { return engine_; }  // "engine 12"

  // In a turn of the context whose handle the target has. The pass's result is written, whatever the pointer's type
  // says.
  void run(CudaContext& context, const CudnnConvolutionArrays& arrays, std::byte* workspace) const;

 private:
  // Whatever a plan was made of is kept with it.
  struct Graph {
    Graph(const CudnnTarget& target, const std::string& operation, Precision precision, const ConvolutionShape& shape,
          ConvolutionPass pass);

    CudnnDescriptor images;
    CudnnDescriptor kernel;
    CudnnDescriptor outputs;
    CudnnDescriptor convolution;
    CudnnDescriptor operation;
    CudnnDescriptor graph;
  };

  enum class Copy { none, rounded, transposed };

  // An array as callers have it.
  struct Operand {
    MatrixExtent extent{};       // of one row where it is not transposed
    std::int64_t alignment = 0;  // in bytes, of the caller's array
    bool is_result = false;
    Copy copy = Copy::none;  // that the library reads or writes instead
  };

  CudnnConvolution(const std::string& operation, Precision precision, const ConvolutionShape& shape,
                   ConvolutionPass pass, std::unique_ptr<Graph> graph);

  bool choose_engine(const CudnnTarget& target, cudnnBackendHeurMode_t mode);
  bool take(const CudnnTarget& target, CudnnDescriptor configuration);

  std::size_t copy_bytes(const Operand& operand) const;
  void copy_in(const Operand& operand, const float* from, std::byte* copy, cudaStream_t stream) const;
  void copy_out(const Operand& operand, const std::byte* copy, float* to, cudaStream_t stream) const;
  void check_alignment(const Operand& operand, const float* array) const;
  void execute(CudaContext& context, const std::array<void*, 3>& pointers, std::byte* workspace) const;

  std::string operation_;
  Precision precision_;
  std::int64_t most_library_bytes_;
  std::array<Operand, 3> operands_;  // images, kernel and outputs
  std::unique_ptr<Graph> graph_;
  std::optional<CudnnDescriptor> configuration_;
  std::optional<CudnnDescriptor> plan_;
  std::size_t library_bytes_ = 0;  // of the workspace, before the copies
  std::string engine_;
};

}  // namespace holdfast::compute
