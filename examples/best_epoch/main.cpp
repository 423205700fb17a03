// Callbacks that people know, under a watchdog: the learning rate falls when the validation loss does not, and the
// weights of the best epoch are evaluated at the end. All of it survives a failure.
//
//   best_epoch [--replicas N | --devices D,D...] [--shards N] [--steps N] [--seed N] [--run-dir DIR] [--report FILE]
//              [--inject rank=1,step=30,fault=kill]

#include <cmath>
#include <numbers>

#include "example_options.h"
#include "holdfast/holdfast.h"

namespace {

using namespace holdfast;

constexpr std::int64_t kBatch = 32;
constexpr std::int64_t kStepsOfAnEpoch = 8;

// Points on two half circles that reach into one another, with noise; the target is which.
Dataset two_moons(std::int64_t samples, std::uint64_t seed) {
  Tensor points{Shape{samples, 2}};
  Tensor moons{Shape{samples, 1}};
  for (std::int64_t i = 0; i < samples; ++i) {
    Random random(seed, Purpose::user, 0, static_cast<std::uint64_t>(i));
    const bool is_lower = i % 2 == 1;
    const float angle = std::numbers::pi_v<float> * random.uniform();
    const float x = is_lower ? 1 - std::cos(angle) : std::cos(angle);
    const float y = is_lower ? 0.5F - std::sin(angle) : std::sin(angle);
    points.sample(i)[0] = x + 0.2F * random.normal();
    points.sample(i)[1] = y + 0.2F * random.normal();
    moons.sample(i)[0] = is_lower ? 1.0F : 0.0F;
  }
  return from_tensors(std::move(points), std::move(moons));
}

void train(Replica& replica, const ExampleOptions& options) {
  const auto [training, rest] = two_moons(2 * kBatch * kStepsOfAnEpoch, options.run.seed).split(0.5);
  const auto [validation, test] = rest.split(0.5);
  Trainer trainer(replica, Sequential{Input{2}, Dense{16, {.activation = Activation::relu}}, Dense{1}},
                  Adam{{.learning_rate = 0.05F}}, BinaryCrossentropy{{.from_logits = true}},
                  {BinaryAccuracy{{.threshold = 0}}});
  trainer.fit(training.shuffle().batch(kBatch),
              {.epochs = options.steps / kStepsOfAnEpoch,
               .validation = validation.batch(kBatch),
               .callbacks = {ReduceLROnPlateau{{.factor = 0.5, .patience = 1}},
                             ModelCheckpoint{{.every_steps = 10, .best_by = "val_loss"}}}});
  trainer.load_weights(best_savepoint(replica.run_directory(), "val_loss"));
  const Logs best = trainer.evaluate(test.batch(kBatch));
  if (!replica.is_primary()) return;
  write_report(trainer, {{"loss", best.at("loss")}, {"binary_accuracy", best.at("binary_accuracy")}}, options);
}

}  // namespace

int main(int argc, char** argv) {
  ExampleOptions options = {
      .description = "A training whose best epoch is kept, and which is mirrored, killed and recovered.",
      .run = {.replicas = 2, .run_directory = "best-epoch-run", .shards = 4},
      .steps = 80};
  if (const std::optional<int> exit_code = read_options(argc, argv, options)) return *exit_code;
  return supervise(argc, argv, options.run, [&](Replica& replica) { train(replica, options); });
}
