// train_peer --model mlp|gpt|lstm [--steps 20] [--batch 16] [--threads 1] [--keep_gradients] [--precision f32|autocast|
// bf16]: models of measured_models.h as a program of LibTorch writes them, for bench/train. Gradients are dropped after
// each step, which takes less time than to fill them with zeros; --keep_gradients fills them, as zero_grad() of
// LibTorch 1.13 does. Weights stay f32 in each precision: with autocast, LibTorch casts them for each step; with bf16
// the model is bf16, and the program copies gradients to master weights, which the optimizer moves, and these back.

#include <ATen/autocast_mode.h>
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
  std::string precision = "f32";
};

struct MeasuredModel : nn::Module {
  virtual Tensor forward(const Tensor& batch) = 0;
  virtual Tensor loss(const Tensor& batch) = 0;
  virtual Tensor draw_batch(std::int64_t samples) const = 0;
};

// Batches are ids, one more than a sample has: inputs are all but the last, targets all but the first.
struct SequenceModel : MeasuredModel {
  explicit SequenceModel(std::int64_t sample_length) : length(sample_length) {}

  Tensor loss(const Tensor& batch) override {
    const Tensor scores = forward(batch.slice(1, 0, length).contiguous());
    // In f32 with each precision, as the loss of Holdfast.
    return torch::cross_entropy_loss(scores.view({-1, kWords}).to(torch::kFloat),
                                     batch.slice(1, 1, length + 1).reshape({-1}));
  }
  Tensor draw_batch(std::int64_t samples) const override {
    return torch::randint(kWords, {samples, length + 1}, torch::kLong);
  }

  const std::int64_t length;
};

struct Mlp final : MeasuredModel {
  // The last number of a row is its class.
  static constexpr std::int64_t kInputs = 8000;

  Tensor forward(const Tensor& x) override {
    const Tensor wide = torch::relu(second(torch::tanh(first(x))));
    return last(torch::relu(fourth(torch::relu(third(wide)))));
  }
  Tensor loss(const Tensor& batch) override {
    const Tensor x = batch.slice(1, 0, kInputs).to(first->weight.scalar_type());
    return torch::binary_cross_entropy_with_logits(forward(x).to(torch::kFloat), batch.slice(1, kInputs));
  }
  Tensor draw_batch(std::int64_t samples) const override {
    // Zeros and ones by chance. There is nothing to learn, which changes no time.
    Tensor batch = torch::rand({samples, kInputs + 1});
    batch.slice(1, kInputs).round_();
    return batch;
  }

  nn::Linear first = register_module("first", nn::Linear(kInputs, 4000));
  nn::Linear second = register_module("second", nn::Linear(4000, 2000));
  nn::Linear third = register_module("third", nn::Linear(2000, 500));
  nn::Linear fourth = register_module("fourth", nn::Linear(500, 300));
  nn::Linear last = register_module("last", nn::Linear(300, 1));
};

struct Block : nn::Module {
  static constexpr std::int64_t kHeads = 4;

  Tensor forward(const Tensor& x, const Tensor& is_later) {
    const std::int64_t samples = x.size(0), length = x.size(1);
    // Queries, keys and values, each [samples, heads, positions, width of a head]. Scores have a row for each position
    // that looks and a column for each that is looked at.
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

  Gpt() : SequenceModel(kLength) {
    for (int i = 0; i < 4; ++i) {
      blocks.push_back(register_module("block_" + std::to_string(i), std::make_shared<Block>()));
    }
    // Weights are leaves, which LibTorch changes in place only where it records no gradients.
    torch::NoGradGuard guard;
    words->weight.normal_(0, 0.02);
    positions->weight.normal_(0, 0.02);
  }

  Tensor forward(const Tensor& ids) override {
    Tensor x = words(ids) + positions(numbers);
    for (const auto& block : blocks) x = block->forward(x, is_later);
    // Tied to the table of words, as in measured_gpt().
    return torch::matmul(last_norm(x), words->weight.t());
  }

  nn::Embedding words = register_module("words", nn::Embedding(kWords, kWidth));
  nn::Embedding positions = register_module("positions", nn::Embedding(kLength, kWidth));
  nn::LayerNorm last_norm = register_module("last_norm", nn::LayerNorm(nn::LayerNormOptions({kWidth})));
  std::vector<std::shared_ptr<Block>> blocks;
  // Constants, not registered: a cast of the model leaves them as they are.
  Tensor is_later = torch::ones({kLength, kLength}, torch::kBool).triu(1);
  Tensor numbers = torch::arange(kLength);
};

struct Lstm final : SequenceModel {
  Lstm() : SequenceModel(64) {}

  Tensor forward(const Tensor& ids) override { return scores(std::get<0>(layers(words(ids)))); }

  nn::Embedding words = register_module("words", nn::Embedding(kWords, kWidth));
  nn::LSTM layers =
      register_module("layers", nn::LSTM(nn::LSTMOptions(kWidth, kWidth).num_layers(2).batch_first(true)));
  nn::Linear scores = register_module("scores", nn::Linear(kWidth, kWords));
};

// The weights that the optimizer moves: the model's, or f32 copies of those in bf16.
class Weights {
 public:
  Weights(MeasuredModel& net, bool is_bf16) : own_(net.parameters()) {
    if (!is_bf16) return;
    // Before the cast, so that masters have all bits.
    for (const Tensor& weight : own_) masters_.push_back(weight.detach().clone().requires_grad_());
    net.to(torch::kBFloat16);
    own_ = net.parameters();
  }

  const std::vector<Tensor>& moved() const { return masters_.empty() ? own_ : masters_; }

  void drop_gradients() {
    for (Tensor& weight : own_) weight.mutable_grad() = Tensor();
  }
  void to_masters() {
    for (std::size_t i = 0; i < masters_.size(); ++i) {
      // Each gradient in bf16 goes as soon as it is copied, so both copies of all gradients are never there at once.
      masters_[i].mutable_grad() = own_[i].grad().to(torch::kFloat);
      own_[i].mutable_grad() = Tensor();
    }
  }
  void from_masters() {
    torch::NoGradGuard guard;
    for (std::size_t i = 0; i < masters_.size(); ++i) {
      own_[i].copy_(masters_[i]);
      masters_[i].mutable_grad() = Tensor();
    }
  }

 private:
  std::vector<Tensor> own_;
  std::vector<Tensor> masters_;
};

// Forward passes alone are cast, as LibTorch's documentation has it.
Tensor loss_of(MeasuredModel& net, const Tensor& batch, bool is_cast) {
  at::autocast::set_cpu_enabled(is_cast);
  at::autocast::set_autocast_cpu_dtype(torch::kBFloat16);
  const Tensor loss = net.loss(batch);
  // The cache holds weights that were cast for this pass. The optimizer moves them, so the next pass must cast again.
  at::autocast::clear_cache();
  at::autocast::set_cpu_enabled(false);
  return loss;
}

void train(MeasuredModel& net, const Arguments& arguments) {
  using Clock = std::chrono::steady_clock;
  Weights weights(net, arguments.precision == "bf16");
  // Rates and decay are those of train_program.cpp.
  std::unique_ptr<torch::optim::Optimizer> optimizer;
  if (arguments.model == "mlp") {
    optimizer = std::make_unique<torch::optim::Adam>(weights.moved(), torch::optim::AdamOptions(1e-4));
  } else {
    optimizer =
        std::make_unique<torch::optim::AdamW>(weights.moved(), torch::optim::AdamWOptions(3e-4).weight_decay(0.1));
  }
  // Drawn before the first step, as the samples of train_program are.
  std::vector<Tensor> batches;
  for (int i = 0; i < kBatches; ++i) batches.push_back(net.draw_batch(arguments.batch));
  std::vector<double> milliseconds;
  for (std::int64_t step = 0; step < arguments.steps; ++step) {
    const Clock::time_point begin = Clock::now();
    const Tensor& batch = batches[static_cast<std::size_t>(step % kBatches)];
    if (arguments.keeps_gradients) {
      optimizer->zero_grad();
    } else {
      weights.drop_gradients();
    }
    loss_of(net, batch, arguments.precision == "autocast").backward();
    weights.to_masters();
    optimizer->step();
    weights.from_masters();
    if (step < kFirstSteps) continue;
    milliseconds.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
  }
  if (milliseconds.empty()) return;
  std::sort(milliseconds.begin(), milliseconds.end());
  // bench/train --wall reads the median in this line.
  std::printf("best %.3f ms median %.3f ms of %zu steps\n", milliseconds.front(), milliseconds[milliseconds.size() / 2],
              milliseconds.size());
}

}  // namespace

int main(int argc, char** argv) try {
  Arguments arguments;
  double budget = 0;
  CLI::App app("Trains some steps with LibTorch; for bench/train.");
  app.add_option("--model", arguments.model, "what is trained")->check(CLI::IsMember({"mlp", "gpt", "lstm"}));
  app.add_option("--steps", arguments.steps, "steps in all")->check(CLI::PositiveNumber);
  app.add_option("--batch", arguments.batch, "samples a step")->check(CLI::PositiveNumber);
  app.add_option("--threads", arguments.threads, "of LibTorch")->check(CLI::PositiveNumber);
  app.add_flag("--keep_gradients", arguments.keeps_gradients, "fill gradients with zeros instead of dropping them");
  app.add_option("--precision", arguments.precision, "how bf16 is used, if it is")
      ->check(CLI::IsMember({"f32", "autocast", "bf16"}));
  app.add_option("--budget_ms", budget, "ignored; bench/train gives it to peers");
  CLI11_PARSE(app, argc, argv);
  at::set_num_threads(arguments.threads);
  torch::manual_seed(1);
  std::shared_ptr<MeasuredModel> net;
  if (arguments.model == "mlp") {
    net = std::make_shared<Mlp>();
  } else if (arguments.model == "gpt") {
    net = std::make_shared<Gpt>();
  } else {
    net = std::make_shared<Lstm>();
  }
  train(*net, arguments);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "train_peer: %s\n", error.what());
  return 1;
}
