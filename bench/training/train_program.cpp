// train_program --model mlp|lenet5|gpt|lstm [--optimizer adam|sgd] [--steps 20] [--batch 128] [--threads 1] [--shards
// 1] [--words 512] [--positions_at_once 0] [--precision f32|bf16]: trains some steps in one process, through fit(),
// with data loading. bench/train measures it next to its peers. Models of sequences are trained with AdamW.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "measured_models.h"

namespace {

using namespace holdfast;
using Clock = std::chrono::steady_clock;

struct Arguments {
  std::string model = "lenet5";
  std::string optimizer = "adam";
  std::int64_t steps = 20;
  std::int64_t batch = 128;
  int threads = 1;
  int shards = 1;
  std::int64_t words = 512;
  std::int64_t positions_at_once = 0;
  std::string precision = "f32";
};

// The time from the end of one step to that of the next. The first steps also make what is made only once.
class Times final : public Callback {
 public:
  std::string name() const override { return "times"; }
  void on_step_end(TrainingContext& context, const Logs&) override {
    const Clock::time_point now = Clock::now();
    // train_peer leaves out as many first steps.
    if (context.step() > 3) milliseconds_.push_back(std::chrono::duration<double, std::milli>(now - last_).count());
    last_ = now;
    if (context.step() == steps_) context.stop_training();
  }
  explicit Times(std::int64_t steps) : steps_(steps) {}

  void print() {
    if (milliseconds_.empty()) return;
    std::sort(milliseconds_.begin(), milliseconds_.end());
    // bench/train --wall reads the median in this line.
    std::printf("best %.3f ms median %.3f ms of %zu steps\n", milliseconds_.front(),
                milliseconds_[milliseconds_.size() / 2], milliseconds_.size());
  }

 private:
  const std::int64_t steps_;
  Clock::time_point last_;
  std::vector<double> milliseconds_;
};

// A model with what trains it.
struct Training {
  Model model;
  std::shared_ptr<const Optimizer> optimizer;
  std::shared_ptr<const Loss> loss;
  Dataset samples;
};

Training training(const Arguments& arguments) {
  const auto of_classes = std::make_shared<SparseCategoricalCrossentropy>(
      CrossentropyOptions{.from_logits = true, .positions_at_once = arguments.positions_at_once});
  if (arguments.model == "gpt" || arguments.model == "lstm") {
    const bool is_gpt = arguments.model == "gpt";
    // Rates and decay are those of train_peer.cpp, and lengths those that the models take.
    return {is_gpt ? measured_gpt(arguments.words) : measured_lstm(),
            std::make_shared<AdamW>(AdamWOptions{.learning_rate = 3e-4F, .weight_decay = 0.1F}), of_classes,
            is_gpt ? measured_words(128, arguments.batch, arguments.words) : measured_words(64, arguments.batch)};
  }
  const bool is_mlp = arguments.model == "mlp";
  std::shared_ptr<const Optimizer> optimizer = std::make_shared<Adam>(is_mlp ? 1e-4F : 1e-3F);
  if (arguments.optimizer == "sgd") {
    optimizer = std::make_shared<SGD>(SGDOptions{.learning_rate = 0.05F, .momentum = 0.9F});
  }
  if (!is_mlp) return {measured_lenet5(), optimizer, of_classes, measured_noise({28, 28, 1}, 10, arguments.batch)};
  return {measured_mlp(), optimizer, std::make_shared<BinaryCrossentropy>(CrossentropyOptions{.from_logits = true}),
          measured_noise({8000}, 2, arguments.batch)};
}

void train(const Arguments& arguments) {
  Replica replica = Replica::alone({.shards = arguments.shards,
                                    .threads_per_shard = arguments.threads,
                                    .precision = precision_from_name(arguments.precision)});
  const Training training = ::training(arguments);
  Trainer trainer(replica, training.model, *training.optimizer, *training.loss);
  const auto times = std::make_shared<Times>(arguments.steps);
  // All repetitions are one epoch, so that no measured step has the end of an epoch in it. Checks compute some
  // gradients twice, which no peer does, so they are off.
  trainer.fit(training.samples.repeat(1'000'000).batch(arguments.batch),
              {.callbacks = {times}, .check_gradients = {.every = 0}});
  // After the training, since printing in a step would be measured with it.
  times->print();
}

}  // namespace

int main(int argc, char** argv) try {
  Arguments arguments;
  CLI::App app("Trains some steps; for bench/train.");
  app.add_option("--model", arguments.model, "what is trained")->check(CLI::IsMember({"mlp", "lenet5", "gpt", "lstm"}));
  app.add_option("--optimizer", arguments.optimizer, "adam or sgd, of mlp and lenet5")
      ->check(CLI::IsMember({"adam", "sgd"}));
  app.add_option("--steps", arguments.steps, "steps in all")->check(CLI::PositiveNumber);
  app.add_option("--batch", arguments.batch, "samples a step")->check(CLI::PositiveNumber);
  app.add_option("--threads", arguments.threads, "threads of a shard")->check(CLI::PositiveNumber);
  app.add_option("--shards", arguments.shards, "parts of each batch")->check(CLI::PositiveNumber);
  app.add_option("--words", arguments.words, "ids of gpt")->check(CLI::PositiveNumber);
  app.add_option("--positions_at_once", arguments.positions_at_once, "of the loss of classes; 0: all")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--precision", arguments.precision, "of products")->check(CLI::IsMember({"f32", "bf16"}));
  CLI11_PARSE(app, argc, argv);
  train(arguments);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "train_program: %s\n", error.what());
  return 1;
}
