#pragma once

// A CUDA device as LibTorch sees it, with the stream on which Holdfast orders all work of the device.

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>

#include "compute/backend.h"
#include "holdfast/train/trainable.h"

namespace holdfast::torch {

class TorchDevice {
 public:
  virtual ~TorchDevice() = default;

  // Where tensors lie.
  virtual at::Device place() const = 0;
  // As long as the result lives, what the calling thread asks of LibTorch is queued on Holdfast's stream.
  virtual std::shared_ptr<void> enter() const = 0;
};

// Throws Error{unsupported} if modules cannot be trained on this device, or if their bits would not come again.
void require_torch_device(const Workers& asked);

// The device of this back end. Throws Error{unavailable} if LibTorch does not find it. Tests put a function into
// torch_device_maker() whose device lies in the host's memory.
using MakeTorchDevice = std::unique_ptr<TorchDevice> (*)(const std::string& name, compute::Backend& backend);
MakeTorchDevice& torch_device_maker();

// Elements in memory of Holdfast, which are not copied.
at::Tensor tensor_at(const void* data, at::IntArrayRef sizes, at::ScalarType type, at::Device place);

}  // namespace holdfast::torch
