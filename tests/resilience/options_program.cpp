// Trains with the options of fit() that say what a step and an epoch are, averages of weights, and bounded weights.
// Then it predicts into a file. For tests of deaths.
//
//   options_program --run-dir DIR [--replicas 2] [--outputs FILE] [--inject FAULT]... [--die-at SAMPLE] [--loop]
//                   [--seconds N] [--per-replica [--replay SAVEPOINT]]
//
// --per-replica: the batch and the learning rate follow the number of replicas.
// --replay: or the numbers of replicas that this savepoint has recorded.
// --seconds: a Timer ends fit() after N seconds of a clock on which each step takes one.
// --loop: trains in a loop of its own in place of fit().
// --die-at: the last rank dies in predict(), when it is given the outputs from that sample on. It does so once.

#include <signal.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <fstream>
#include <functional>
#include <memory>
#include <string>

#include "holdfast/holdfast.h"

namespace {

using namespace holdfast;

constexpr std::int64_t kSamples = 90;

// Three classes, of which the first has most samples.
Dataset labelled_points() {
  Tensor features{Shape{kSamples, 4}};
  Tensor labels{Shape{kSamples}};
  for (std::int64_t i = 0; i < kSamples; ++i) {
    Random random(5, Purpose::user, 0, static_cast<std::uint64_t>(i));
    const std::uint64_t label = i % 3 == 0 ? random.below(3) : 0;
    labels.sample(i)[0] = static_cast<float>(label);
    for (float& value : features.sample(i)) value = random.normal() + static_cast<float>(label);
  }
  return from_tensors(features, labels);
}

// A clock of this process alone, as clocks are.
class StepsAreSeconds final : public Callback {
 public:
  std::string name() const override { return "steps_are_seconds"; }
  void on_step_end(TrainingContext&, const Logs&) override { *seconds_ += 1; }
  std::function<std::chrono::steady_clock::time_point()> now() const {
    return [seconds = seconds_] { return std::chrono::steady_clock::time_point(std::chrono::seconds(*seconds)); };
  }

 private:
  std::shared_ptr<std::int64_t> seconds_ = std::make_shared<std::int64_t>(0);
};

// Trains for up to 1000 steps.
void train_for(Replica& replica, std::int64_t seconds) {
  Trainer trainer(replica, Sequential{Input{4}, Dense{3}}, Adam{0.01F},
                  SparseCategoricalCrossentropy{{.from_logits = true}});
  const StepsAreSeconds clock;
  trainer.fit(labelled_points().batch(9),
              {.epochs = 100,
               .callbacks = {ModelCheckpoint{{.every_steps = 3}}, CSVLogger{}, clock,
                             Timer{{.limit = std::chrono::seconds(seconds), .now = clock.now()}}}});
}

// Epochs end within passes. Each epoch has 16 steps, so that a process which was replaced joins before the end.
void train_per_replica(Replica& replica, const std::string& replay) {
  Trainer trainer(replica, Sequential{Input{4}, Dense{16, {.activation = Activation::relu}}, Dropout{0.1F}, Dense{3}},
                  Adam{CosineDecay{0.01F, 300}}, SparseCategoricalCrossentropy{{.from_logits = true}});
  GlobalBatch batch{.policy = BatchPolicy::per_replica, .rate_for_replicas = 2};
  if (!replay.empty()) batch.replay = recorded_batches(replay);
  trainer.fit(labelled_points().shuffle().batch(4), {.epochs = 20,
                                                     .steps_per_epoch = 16,
                                                     .global_batch = batch,
                                                     .callbacks = {ModelCheckpoint{{.every_steps = 3}}, CSVLogger{}}});
}

void train(Replica& replica, const std::string& outputs, std::int64_t die_at, bool has_loop) {
  const Dataset data = labelled_points();
  const auto [training, validation] = data.split(0.2);
  const Dense hidden{16,
                     {.activation = Activation::relu,
                      .kernel_regularizer = Regularizer::l2(),
                      .kernel_constraint = Constraint::max_norm(0.75F)}};
  // Validation reads averages, and a death there must leave the weights that are trained.
  Trainer trainer(replica, Sequential{Input{4}, hidden, Dropout{0.1F}, Dense{3}},
                  Adam{{.learning_rate = 0.01F, .use_ema = true, .ema_momentum = 0.75F}},
                  SparseCategoricalCrossentropy{{.from_logits = true}}, {unweighted(SparseCategoricalAccuracy{})});
  // A pass has six steps, so epochs end within passes.
  const FitOptions options{
      .epochs = 5,
      .validation = validation.batch(6),
      .validation_every = 2,
      .steps_per_epoch = 5,
      .accumulate = 2,
      .class_weights = balanced_class_weights(training),
      // The highest loss is that of the first validation, so the weights of that epoch come back.
      .callbacks = {ModelCheckpoint{{.every_steps = 3}}, CSVLogger{}, SwapEMAWeights{},
                    EarlyStopping{{.best = Best::highest, .patience = 100, .restore_best_weights = true}}}};
  const Dataset batches = training.shuffle().batch(6);
  if (has_loop) {
    for (const TrainingStep& at : trainer.steps(batches, options)) {
      if (at.context.step() > 25) at.context.stop_training();
    }
  } else {
    trainer.fit(batches, options);
  }
  std::ofstream file;
  trainer.predict(data.batch(8), [&](std::int64_t first_sample, const std::vector<Tensor>& batch) {
    const bool is_last = replica.rank() + 1 == replica.size();
    if (first_sample == die_at && is_last && replica.restarts().empty()) ::raise(SIGKILL);
    if (!replica.is_primary() || outputs.empty()) return;
    if (first_sample == 0) {
      file.close();
      file.open(outputs, std::ios::binary | std::ios::trunc);
    }
    const auto values = batch[0].values();
    file.write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(values.size_bytes()));
    file.flush();
  });
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Trains with steps of several batches, and predicts.");
  SuperviseOptions options{.replicas = 2, .shards = 4};
  std::string outputs;
  std::int64_t die_at = -1;
  bool has_loop = false;
  std::int64_t seconds = 0;
  bool is_per_replica = false;
  std::string replay;
  app.add_option("--run-dir", options.run_directory)->required();
  app.add_option("--replicas", options.replicas);
  app.add_option("--inject", options.recovery.faults);
  app.add_option("--outputs", outputs);
  app.add_option("--die-at", die_at);
  app.add_flag("--loop", has_loop);
  app.add_option("--seconds", seconds);
  app.add_flag("--per-replica", is_per_replica);
  app.add_option("--replay", replay);
  CLI11_PARSE(app, argc, argv);
  return supervise(argc, argv, options, [&](Replica& replica) {
    if (seconds > 0) return train_for(replica, seconds);
    if (is_per_replica) return train_per_replica(replica, replay);
    train(replica, outputs, die_at, has_loop);
  });
}
