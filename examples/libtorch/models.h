#pragma once

// Modules as an application of LibTorch has them: nothing in here knows of Holdfast.

#include <torch/torch.h>

// A block of a residual network: two convolutions, added to their input.
struct BlockImpl : torch::nn::Module {
  BlockImpl(int64_t from, int64_t to, int64_t stride)
      : first(register_module("first", conv(from, to, 3, stride))),
        first_norm(register_module("first_norm", torch::nn::BatchNorm2d(to))),
        second(register_module("second", conv(to, to, 3, 1))),
        second_norm(register_module("second_norm", torch::nn::BatchNorm2d(to))) {
    if (stride != 1 || from != to) shortcut = register_module("shortcut", conv(from, to, 1, stride));
  }

  torch::Tensor forward(const torch::Tensor& x) {
    const torch::Tensor y = second_norm(second(torch::relu(first_norm(first(x)))));
    return torch::relu(y + (shortcut ? shortcut(x) : x));
  }

  static torch::nn::Conv2d conv(int64_t from, int64_t to, int64_t size, int64_t stride) {
    return torch::nn::Conv2d(torch::nn::Conv2dOptions(from, to, size).stride(stride).padding(size / 2).bias(false));
  }

  torch::nn::Conv2d first;
  torch::nn::BatchNorm2d first_norm;
  torch::nn::Conv2d second;
  torch::nn::BatchNorm2d second_norm;
  torch::nn::Conv2d shortcut{nullptr};
};
TORCH_MODULE(Block);

struct ResNet : torch::nn::Module {
  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(stem_norm(stem(x.reshape({-1, 1, 28, 28}))));
    x = blocks->forward(x);
    return head(x.mean({2, 3}));
  }

  torch::nn::Conv2d stem = register_module("stem", BlockImpl::conv(1, 8, 3, 2));
  torch::nn::BatchNorm2d stem_norm = register_module("stem_norm", torch::nn::BatchNorm2d(8));
  torch::nn::Sequential blocks =
      register_module("blocks", torch::nn::Sequential(Block(8, 8, 1), Block(8, 16, 2), Block(16, 32, 2)));
  torch::nn::Linear head = register_module("head", torch::nn::Linear(32, 10));
};

// Says for each position of a sequence of tokens which one comes next.
struct Transformer : torch::nn::Module {
  static constexpr int64_t kTokens = 32, kLength = 24, kWidth = 32;

  torch::Tensor forward(const torch::Tensor& tokens) {
    torch::Tensor x = (embedding(tokens) + positions).transpose(0, 1);  // [length, samples, width]
    x = encoder(x, mask);
    return head(x.transpose(0, 1));
  }

  torch::nn::Embedding embedding = register_module("embedding", torch::nn::Embedding(kTokens, kWidth));
  torch::Tensor positions = register_parameter("positions", 0.02 * torch::randn({kLength, kWidth}));
  // A position looks at itself and those before it.
  torch::Tensor mask =
      register_buffer("mask", torch::full({kLength, kLength}, -std::numeric_limits<float>::infinity()).triu(1));
  torch::nn::TransformerEncoder encoder = register_module(
      "encoder", torch::nn::TransformerEncoder(
                     torch::nn::TransformerEncoderLayer(
                         torch::nn::TransformerEncoderLayerOptions(kWidth, 4).dim_feedforward(64).dropout(0.1)),
                     2));
  torch::nn::Linear head = register_module("head", torch::nn::Linear(kWidth, kTokens));
};
