#pragma once

// A module that knows nothing of Holdfast.

#include <torch/torch.h>

struct Net : torch::nn::Module {
  torch::Tensor forward(const torch::Tensor& images) { return out(torch::tanh(hidden(images.flatten(1)))); }

  torch::nn::Linear hidden = register_module("hidden", torch::nn::Linear(28 * 28, 16));
  torch::nn::Linear out = register_module("out", torch::nn::Linear(16, 10));
};
