// train_program --model mlp|lenet5 [--optimizer adam|sgd] [--steps 20] [--batch 128] [--threads 1] [--shards 1]: trains
// some steps in one process, through fit(), with data loading. bench/train measures it next to its peers.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "holdfast/base/error.h"
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
};

// The time from the end of one step to that of the next. The first steps also make what is made only once.
class Times final : public Callback {
 public:
  std::string name() const override { return "times"; }
  void on_step_end(TrainingContext& context, const Logs&) override {
    const Clock::time_point now = Clock::now();
    if (context.step() > 3) milliseconds_.push_back(std::chrono::duration<double, std::milli>(now - last_).count());
    last_ = now;
    if (context.step() == steps_) context.stop_training();
  }
  explicit Times(std::int64_t steps) : steps_(steps) {}

  void print() {
    if (milliseconds_.empty()) return;
    std::sort(milliseconds_.begin(), milliseconds_.end());
    std::printf("best %.3f ms median %.3f ms of %zu steps\n", milliseconds_.front(),
                milliseconds_[milliseconds_.size() / 2], milliseconds_.size());
  }

 private:
  const std::int64_t steps_;
  Clock::time_point last_;
  std::vector<double> milliseconds_;
};

void train(const Arguments& arguments) {
  const bool is_mlp = arguments.model == "mlp";
  Replica replica = Replica::alone({.shards = arguments.shards, .threads_per_shard = arguments.threads});
  const std::shared_ptr<const Optimizer> optimizer = arguments.optimizer == "sgd"
                                                         ? std::shared_ptr<const Optimizer>(std::make_shared<const SGD>(
                                                               SGDOptions{.learning_rate = 0.05F, .momentum = 0.9F}))
                                                         : std::make_shared<const Adam>(is_mlp ? 1e-4F : 1e-3F);
  const BinaryCrossentropy of_two({.from_logits = true});
  const SparseCategoricalCrossentropy of_ten({.from_logits = true});
  Trainer trainer(replica, is_mlp ? measured_mlp() : measured_lenet5(), *optimizer,
                  is_mlp ? static_cast<const Loss&>(of_two) : of_ten);
  const Dataset samples =
      is_mlp ? measured_noise({8000}, 2, arguments.batch) : measured_noise({28, 28, 1}, 10, arguments.batch);
  const auto times = std::make_shared<Times>(arguments.steps);
  trainer.fit(samples.repeat(1'000'000).batch(arguments.batch),
              {.callbacks = {times}, .check_gradients = {.every = 0}});
  times->print();
}

}  // namespace

int main(int argc, char** argv) try {
  Arguments arguments;
  CLI::App app("Trains some steps; for bench/train.");
  app.add_option("--model", arguments.model, "mlp or lenet5")->check(CLI::IsMember({"mlp", "lenet5"}));
  app.add_option("--optimizer", arguments.optimizer, "adam or sgd")->check(CLI::IsMember({"adam", "sgd"}));
  app.add_option("--steps", arguments.steps, "steps in all")->check(CLI::PositiveNumber);
  app.add_option("--batch", arguments.batch, "samples a step")->check(CLI::PositiveNumber);
  app.add_option("--threads", arguments.threads, "threads of a shard")->check(CLI::PositiveNumber);
  app.add_option("--shards", arguments.shards, "parts of each batch")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  train(arguments);
  return 0;
} catch (const Error& error) {
  std::fprintf(stderr, "train_program: %s\n", error.what());
  return 1;
}
