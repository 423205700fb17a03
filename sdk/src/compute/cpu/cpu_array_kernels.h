#pragma once

#include "compute/array_kernels.h"

namespace holdfast::compute {

// On the calling thread. Bits depend on shapes alone.
class CpuArrayKernels final : public ArrayKernels {
 public:
  void elements(const ElementProgram& program, const ElementShape& shape, std::span<const float* const> inputs,
                std::span<float* const> outputs) override;
  void copy(const StridedCopy& copy, const float* from, float* to) override;
  void reduce(const RowReduction& reduction, const float* from, float* to) override;
  void convert(const RowConversion& conversion, const float* from, float* to) override;
  void gather(const RowGather& gather, const float* table, const float* ids, float* to) override;
  void scatter_sum(const RowGather& gather, const float* from, const float* ids, float* table) override;
};

}  // namespace holdfast::compute
