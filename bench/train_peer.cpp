// train_peer --model gpt|lstm [--steps 20] [--batch 16] [--threads 1] [--keep_gradients]: the sequence models of
// measured_models.h as a program of LibTorch writes them, for bench/train. Gradients are dropped after each step, which
// takes less time than to fill them with zeros; --keep_gradients fills them, as zero_grad() of LibTorch 1.13 does.

#include <torch/torch.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace {

namespace nn = torch::nn;
using torch::Tensor;

constexpr std::int64_t kFirstSteps = 3;  // that are not measured
constexpr std::int64_t kBatches = 8;
constexpr std::int64_t kWords = 512;
constexpr std::int64_t kWidth = 256;

struct Arguments {
  std::string model = "gpt";
  std::int64_t steps = 20;
  std::int64_t batch = 16;
  int threads = 1;
  bool keeps_gradients = false;
};

struct SequenceModel : nn::Module {
  virtual Tensor forward(const Tensor& ids) = 0;
};

struct Block : nn::Module {
  static constexpr std::int64_t kHeads = 4;

  Tensor forward(const Tensor& x, const Tensor& is_later) {
    const std::int64_t samples = x.size(0), length = x.size(1);
    const auto parts =
        attention(first_norm(x)).view({samples, length, 3, kHeads, kWidth / kHeads}).permute({2, 0, 3, 1, 4}).unbind(0);
    const Tensor scores = torch::matmul(parts[0], parts[1].transpose(-2, -1)) / std::sqrt(kWidth / kHeads);
    const Tensor shares = torch::softmax(scores.masked_fill(is_later, -INFINITY), -1);
    const Tensor seen = torch::matmul(shares, parts[2]).transpose(1, 2).reshape({samples, length, kWidth});
    const Tensor middle = x + projection(seen);
    return middle + narrow(torch::gelu(wide(second_norm(middle)), "tanh"));
  }

  nn::LayerNorm first_norm = register_module("first_norm", nn::LayerNorm(nn::LayerNormOptions({kWidth})));
  nn::LayerNorm second_norm = register_module("second_norm", nn::LayerNorm(nn::LayerNormOptions({kWidth})));
  nn::Linear attention = register_module("attention", nn::Linear(kWidth, 3 * kWidth));
  nn::Linear projection = register_module("projection", nn::Linear(kWidth, kWidth));
  nn::Linear wide = register_module("wide", nn::Linear(kWidth, 4 * kWidth));
  nn::Linear narrow = register_module("narrow", nn::Linear(4 * kWidth, kWidth));
};

struct Gpt final : SequenceModel {
  static constexpr std::int64_t kLength = 128;

  Gpt() {
    for (int i = 0; i < 4; ++i) {
      blocks.push_back(register_module("block_" + std::to_string(i), std::make_shared<Block>()));
    }
    torch::NoGradGuard guard;
    words->weight.normal_(0, 0.02);
    positions->weight.normal_(0, 0.02);
  }

  Tensor forward(const Tensor& ids) override {
    Tensor x = words(ids) + positions(numbers);
    for (const auto& block : blocks) x = block->forward(x, is_later);
    return torch::matmul(last_norm(x), words->weight.t());
  }

  nn::Embedding words = register_module("words", nn::Embedding(kWords, kWidth));
  nn::Embedding positions = register_module("positions", nn::Embedding(kLength, kWidth));
  nn::LayerNorm last_norm = register_module("last_norm", nn::LayerNorm(nn::LayerNormOptions({kWidth})));
  std::vector<std::shared_ptr<Block>> blocks;
  Tensor is_later = torch::ones({kLength, kLength}, torch::kBool).triu(1);
  Tensor numbers = torch::arange(kLength);
};

struct Lstm final : SequenceModel {
  static constexpr std::int64_t kLength = 64;

  Tensor forward(const Tensor& ids) override { return scores(std::get<0>(layers(words(ids)))); }

  nn::Embedding words = register_module("words", nn::Embedding(kWords, kWidth));
  nn::LSTM layers =
      register_module("layers", nn::LSTM(nn::LSTMOptions(kWidth, kWidth).num_layers(2).batch_first(true)));
  nn::Linear scores = register_module("scores", nn::Linear(kWidth, kWords));
};

void train(SequenceModel& net, std::int64_t length, const Arguments& arguments) {
  using Clock = std::chrono::steady_clock;
  torch::optim::AdamW optimizer(net.parameters(), torch::optim::AdamWOptions(3e-4).weight_decay(0.1));
  std::vector<Tensor> batches;
  for (int i = 0; i < kBatches; ++i) {
    batches.push_back(torch::randint(kWords, {arguments.batch, length + 1}, torch::kLong));
  }
  std::vector<double> milliseconds;
  for (std::int64_t step = 0; step < arguments.steps; ++step) {
    const Clock::time_point begin = Clock::now();
    const Tensor& batch = batches[static_cast<std::size_t>(step % kBatches)];
    if (arguments.keeps_gradients) {
      optimizer.zero_grad();
    } else {
      for (Tensor& parameter : net.parameters()) parameter.mutable_grad() = Tensor();
    }
    const Tensor scores = net.forward(batch.slice(1, 0, length).contiguous());
    torch::cross_entropy_loss(scores.view({-1, kWords}), batch.slice(1, 1, length + 1).reshape({-1})).backward();
    optimizer.step();
    if (step < kFirstSteps) continue;
    milliseconds.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
  }
  if (milliseconds.empty()) return;
  std::sort(milliseconds.begin(), milliseconds.end());
  std::printf("best %.3f ms median %.3f ms of %zu steps\n", milliseconds.front(), milliseconds[milliseconds.size() / 2],
              milliseconds.size());
}

}  // namespace

int main(int argc, char** argv) try {
  Arguments arguments;
  double budget = 0;
  CLI::App app("Trains some steps with LibTorch; for bench/train.");
  app.add_option("--model", arguments.model, "gpt or lstm")->check(CLI::IsMember({"gpt", "lstm"}));
  app.add_option("--steps", arguments.steps, "steps in all")->check(CLI::PositiveNumber);
  app.add_option("--batch", arguments.batch, "samples a step")->check(CLI::PositiveNumber);
  app.add_option("--threads", arguments.threads, "of LibTorch")->check(CLI::PositiveNumber);
  app.add_flag("--keep_gradients", arguments.keeps_gradients, "fill gradients with zeros instead of dropping them");
  app.add_option("--budget_ms", budget, "ignored; bench/train gives it to peers");
  CLI11_PARSE(app, argc, argv);
  at::set_num_threads(arguments.threads);
  torch::manual_seed(1);
  if (arguments.model == "gpt") {
    Gpt net;
    train(net, Gpt::kLength, arguments);
  } else {
    Lstm net;
    train(net, Lstm::kLength, arguments);
  }
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "train_peer: %s\n", error.what());
  return 1;
}
