// Fits a line to points on replicas whose shards take a given time, whatever else the machine does. For tests of slow
// replicas.
//
//   paced_program --run-dir DIR [--replicas 2] [--spares 0] [--when-slow report] [--shard-ms 4] [--inject FAULT]...
//                 [--when-lost shrink] [--end-at STEP]
//
// --end-at: a callback asks for the end there, and has the last rank die when the first process gets there.

#include <signal.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <thread>

#include "holdfast/holdfast.h"
#include "support/line_points.h"

namespace {

using namespace holdfast;

constexpr std::int64_t kSamples = 240;
constexpr std::int64_t kBatch = 24;
constexpr std::int64_t kEpochs = 52;

class PacedLine final : public Trainable {
 public:
  explicit PacedLine(std::chrono::milliseconds shard_time) : shard_time_(shard_time) {}

  std::string graph() const override { return R"({"name": "line"})"; }
  std::string configuration() const override { return "{}"; }
  std::string arithmetic() const override { return "plain C++"; }
  Shape feature_shape() const override { return {1}; }
  Shape target_shape() const override { return {1}; }
  Shape output_shape() const override { return {1}; }
  void prepare(const Workers&) override {}
  void initialize(std::uint64_t) override { weights_ = {0.5F, 0.0F}; }
  std::vector<StateSpan> state() override { return {{"weights", StateKind::parameter, Shape{2}, weights_}}; }
  std::vector<std::string> sum_names() const override { return {"loss"}; }
  std::size_t gradient_count() const override { return weights_.size(); }

  void compute_gradients(const ShardBatch& batch, GradientSink& sink, std::span<float> sums) override {
    std::this_thread::sleep_for(shard_time_);
    const std::span<float> gradients = sink.gradients();
    gradients[0] = gradients[1] = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(batch.samples); ++i) {
      const float error = output(batch.features[i]) - batch.targets[i];
      gradients[0] += error * batch.features[i] / static_cast<float>(batch.batch_samples);
      gradients[1] += error / static_cast<float>(batch.batch_samples);
      sums[0] += error * error;
    }
    sink.ready(0, gradients.size());
  }
  void compute_sums(const ShardBatch&, std::span<float>) override {}
  void predict(const ShardBatch& batch, std::span<float> outputs) override {
    for (std::size_t i = 0; i < outputs.size(); ++i) outputs[i] = output(batch.features[i]);
  }
  void apply_update(const Update& update) override {
    for (std::size_t i = 0; i < weights_.size(); ++i) weights_[i] -= 0.1F * update.gradients[i];
  }

 private:
  float output(float feature) const { return weights_[0] * feature + weights_[1]; }

  const std::chrono::milliseconds shard_time_;
  std::vector<float> weights_{0.5F, 0.0F};
};

class EndAt final : public Callback {
 public:
  EndAt(std::int64_t step, bool may_die) : step_(step), may_die_(may_die) {}
  std::string name() const override { return "end_at"; }
  void on_step_end(TrainingContext& context, const Logs&) override {
    if (context.step() != step_) return;
    if (may_die_ && context.rank() + 1 == context.replicas()) ::raise(SIGKILL);
    context.stop_training();
  }

 private:
  const std::int64_t step_;
  const bool may_die_;
};

void train(Replica& replica, int shard_milliseconds, std::int64_t end_at) {
  PacedLine line{std::chrono::milliseconds(shard_milliseconds)};
  Trainer trainer(replica, line);
  trainer.fit(line_points(kSamples).shuffle().batch(kBatch),
              {.epochs = kEpochs, .callbacks = {EndAt{end_at, replica.size() > 1 && replica.restarts().empty()}}});
  if (!replica.is_primary()) return;
  std::printf("steps %ld weights %s\n", static_cast<long>(trainer.step()), trainer.weights_digest().hex().c_str());
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Trains on replicas whose shards take a given time.");
  // With this many threads for each shard, a replica computes one shard after the other on any machine.
  SuperviseOptions options{.replicas = 2, .shards = 6, .threads_per_shard = 1024};
  int shard_milliseconds = 4;
  std::int64_t end_at = 0;
  const std::map<std::string, WhenSlow> choices{
      {"report", WhenSlow::report}, {"deal", WhenSlow::deal}, {"replace", WhenSlow::replace}};
  app.add_option("--run-dir", options.run_directory)->required();
  app.add_option("--replicas", options.replicas);
  app.add_option("--spares", options.recovery.spares);
  app.add_option("--when-slow", options.recovery.when_slow)->transform(CLI::CheckedTransformer(choices));
  app.add_option("--shard-ms", shard_milliseconds, "that a shard takes");
  app.add_option("--end-at", end_at);
  const std::map<std::string, WhenLost> ways{{"shrink", WhenLost::shrink}, {"wait", WhenLost::wait}};
  app.add_option("--when-lost", options.recovery.when_lost)->transform(CLI::CheckedTransformer(ways));
  app.add_option("--inject", options.recovery.faults);
  CLI11_PARSE(app, argc, argv);
  return supervise(argc, argv, options, [&](Replica& replica) { train(replica, shard_milliseconds, end_at); });
}
