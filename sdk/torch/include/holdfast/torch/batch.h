#pragma once

// What forward(), losses and metrics of a module are called with.

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::torch {

// A tensor with its name; empty where it is known by its position.
struct NamedTensor {
  std::string name;   // of the data set's array
  at::Tensor tensor;  // [samples, shape of a sample]
};

// The samples of one shard, in the memory of the host. Tensors may be views of memory that Holdfast owns: read them, do
// not write to them, and keep none after the function returns. A u16 arrives as i32, which LibTorch computes with.
class Batch {
 public:
  // For Holdfast, and for tests of functions that take a batch.
  Batch(std::vector<NamedTensor> inputs, std::vector<NamedTensor> targets, std::int64_t samples)
      : inputs_(std::move(inputs)), targets_(std::move(targets)), samples_(samples) {}

  // An input by its position. Throws Error{not_found} where there are fewer.
  const at::Tensor& input(std::size_t position = 0) const;
  // An input by its name. Throws Error{not_found} that lists the names.
  const at::Tensor& input(std::string_view name) const;
  // A target likewise. predict() has none.
  const at::Tensor& target(std::size_t position = 0) const;
  // A target by its name.
  const at::Tensor& target(std::string_view name) const;
  // The first extent of each tensor.
  std::int64_t samples() const { return samples_; }

 private:
  std::vector<NamedTensor> inputs_;
  std::vector<NamedTensor> targets_;
  std::int64_t samples_;
};

// What forward() returns: one tensor [samples, ...], or several. A function that takes a tensor can be called with it
// if there is one, so a loss is written as for LibTorch:
//
//   .loss = [](const torch::Tensor& output, const holdfast::torch::Batch& batch) {
//     return torch::mse_loss(output, batch.target());
//   }
class Outputs {
 public:
  // One output.
  Outputs(at::Tensor output) : tensors_{std::move(output)} {}  // NOLINT: a tensor is returned as it is
  // Several outputs, by position.
  Outputs(std::vector<at::Tensor> outputs) : tensors_(std::move(outputs)) {}  // NOLINT
  Outputs(std::initializer_list<at::Tensor> outputs) : tensors_(outputs) {}

  // Throws Error{not_found} where there are fewer.
  const at::Tensor& operator[](std::size_t position) const;
  // How many there are.
  std::size_t size() const { return tensors_.size(); }
  // The only output. Throws Error{invalid_argument} if there are several.
  operator const at::Tensor&() const;  // NOLINT: losses of LibTorch take a tensor

 private:
  std::vector<at::Tensor> tensors_;
};

}  // namespace holdfast::torch
