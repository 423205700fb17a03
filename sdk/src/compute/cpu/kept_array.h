#pragma once

// A copy of an array in another type or order, which is made once and then read by several primitives or runs.

#include <optional>
#include <string>

#include "compute/aligned_floats.h"
#include "compute/cpu/primitive.h"

namespace holdfast::compute {

class KeptArray {
 public:
  // `operation` names it in errors. Its memory is taken by the first set().
  KeptArray(CpuContext& context, const std::string& operation, const MemoryDesc& from, const MemoryDesc& to);

  void set(const float* array);
  const void* data() const { return memory_.data(); }

 private:
  const std::size_t floats_;
  std::optional<Primitive> copy_;
  AlignedFloats memory_;
};

}  // namespace holdfast::compute
