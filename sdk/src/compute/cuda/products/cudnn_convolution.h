#pragma once

// One pass of a convolution on cuDNN's graph API, made for one shape. Images are used where they are. The library does
// not support the order of our kernel's axes, [height, width, channel, filter]. So each run copies the kernel into the
// workspace as [filter, height, width, channel], or its gradient out of it.
//
// At Precision::bf16 each run rounds its inputs into the workspace. The library writes its result there in bf16 too:
// sums are f32, and are rounded once when they are complete. The result is widened to f32 on its way out.
//
// The engine is the first one of the library's heuristic, and then of its fallback, that gives the same bits each time
// at the given precision. Engines that are compiled at run time are left out, because a machine may lack the compiler.
// So the engine depends on the shape, the device and the library, never on timing. Its workspace may be as large as
// copies of the images. docs/decisions/convolution.md

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

// The device that a plan is made for.
struct CudnnTarget {
  cudnnHandle_t handle = nullptr;                // of the device that will run the plan; or null, and then
  const CudnnDescriptor* description = nullptr;  // a description of a device that need not exist, since cuDNN 9.8
};

class CudnnConvolution {
 public:
  // Returns nothing if the library has no such engine for the shape.
  static std::optional<CudnnConvolution> find(const CudnnTarget& target, Precision precision,
                                              const ConvolutionShape& shape, ConvolutionPass pass);

  std::size_t workspace_bytes() const;
  const std::string& engine() const { return engine_; }  // "engine 12"

  // The caller must hold the stream lock of the context that owns the target's handle. The array of the result is
  // written, although all pointers are to const.
  void run(CudaContext& context, const CudnnConvolutionArrays& arrays, std::byte* workspace) const;

 private:
  // The descriptors that a plan was made of must live as long as it does.
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

  // An array of the caller.
  struct Operand {
    MatrixExtent extent{};       // one row if it is not transposed
    std::int64_t alignment = 0;  // in bytes, of the caller's array
    bool is_result = false;
    Copy copy = Copy::none;  // the copy that the library reads or writes instead
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
