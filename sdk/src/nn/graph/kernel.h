#pragma once

// An operation that was made for a number of samples, and what it is made with.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>

#include "compute/backend.h"
#include "holdfast/base/error.h"
#include "holdfast/nn/value.h"

namespace holdfast {

class Operation;

// The arrays of a kernel, in the order of the operation's inputs and outputs. A missing one is null.
class KernelArrays {
 public:
  KernelArrays(std::span<std::byte* const> inputs, std::span<std::byte* const> outputs)
      : inputs_(inputs), outputs_(outputs) {}

  // Null for a missing array. Integers come as pointers to floats too, and the kernel knows their type.
  const float* input(std::size_t index) const { return reinterpret_cast<const float*>(inputs_[index]); }
  float* output(std::size_t index) const { return reinterpret_cast<float*>(outputs_[index]); }
  std::span<std::byte* const> inputs() const { return inputs_; }
  std::span<std::byte* const> outputs() const { return outputs_; }

 private:
  std::span<std::byte* const> inputs_;
  std::span<std::byte* const> outputs_;
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  // Queues the work of one pass. It must not allocate, and on a device not wait. One thread at a time calls it.
  virtual void run(const KernelArrays& arrays) = 0;
  // Memory of its own in the host's memory, besides that of its back end.
  virtual std::size_t own_bytes() const { return 0; }
};

// A kernel that is a function of its arrays.
template <class Function>
class FunctionKernel final : public Kernel {
 public:
  FunctionKernel(Function function, std::size_t own_bytes) : function_(std::move(function)), own_bytes_(own_bytes) {}
  void run(const KernelArrays& arrays) override { function_(arrays); }
  std::size_t own_bytes() const override { return own_bytes_; }

 private:
  Function function_;
  const std::size_t own_bytes_;
};

template <class Function>
std::unique_ptr<Kernel> make_function_kernel(Function function, std::size_t own_bytes = 0) {
  return std::make_unique<FunctionKernel<Function>>(std::move(function), own_bytes);
}

// The objects that passes of one operation share: its backward pass may use what its forward pass has kept.
using SharedObjects = std::map<const Operation*, std::shared_ptr<void>>;

struct KernelMaker {
  // Kernels may keep a reference to the back end, which outlives them. All else is valid while the kernel is made.
  compute::Backend& backend;
  std::int64_t samples;
  compute::Use use;
  std::span<const std::optional<ValueSpec>> inputs;
  std::span<const std::optional<ValueSpec>> outputs;  // an output that nobody reads is missing
  SharedObjects& shared;

  const Shape& input_shape(std::size_t index) const { return inputs[index]->shape; }
  // Samples times positions of an input whose last axis are channels.
  std::int64_t rows(std::size_t input) const;
  std::int64_t channels(std::size_t input) const;

  // Keeps what the forward pass of `operation` has made for its backward pass.
  template <class Object>
  std::shared_ptr<Object> share(const Operation& operation, std::unique_ptr<Object> object) const {
    std::shared_ptr<Object> kept = std::move(object);
    shared[&operation] = kept;
    return kept;
  }
  // Asserts that the kernel of `operation` was made before, as that of a forward pass is.
  template <class Object>
  std::shared_ptr<Object> made_by(const Operation& operation) const {
    const auto found = shared.find(&operation);
    HOLDFAST_ASSERT(found != shared.end());
    return std::static_pointer_cast<Object>(found->second);
  }
};

// Extent of the last axis, and product of the ones before it.
std::int64_t last_extent(const Shape& shape);
std::int64_t leading_elements(const Shape& shape);

}  // namespace holdfast
