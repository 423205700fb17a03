#pragma once

#include "compute/array_kernels.h"
#include "compute/cuda/runtime/cuda_context.h"

namespace holdfast::compute {

// Queues on the context's stream, holding the stream lock. The context must outlive it.
class CudaArrayKernels final : public ArrayKernels {
 public:
  explicit CudaArrayKernels(CudaContext& context) : context_(context) {}

  void elements(const ElementProgram& program, const ElementShape& shape, std::span<const float* const> inputs,
                std::span<float* const> outputs) override;
  void copy(const StridedCopy& copy, const float* from, float* to) override;
  void reduce(const RowReduction& reduction, const float* from, float* to) override;
  void convert(const RowConversion& conversion, const float* from, float* to) override;
  void gather(const RowGather& gather, const float* table, const float* ids, float* to) override;
  void scatter_sum(const RowGather& gather, const float* from, const float* ids, float* table) override;
  void attention_shares(const AttentionScores& scores, const float* from, const float* mask, float* shares) override;
  void attention_shares_backward(const AttentionScores& scores, const float* shares, const float* shares_gradient,
                                 float* scores_gradient) override;
  void cells_forward(const RecurrentCells& cells, const CellsForward& arrays) override;
  void cells_backward(const RecurrentCells& cells, const CellsBackward& arrays) override;

 private:
  CudaContext& context_;
};

}  // namespace holdfast::compute
