// Trains a hand-written model on mirrored replicas:
//
//   custom_trainable [--replicas N] [--run-dir DIR] [--fresh] [--inject rank=1,step=30,fault=kill]

#include <CLI/CLI.hpp>
#include <cstdio>

#include "linear_regression.h"

namespace {

constexpr std::int64_t kFeatures = 32;

// Samples of y = sum of i/10 x_i + 3 + noise.
holdfast::Dataset measurements(std::int64_t count) {
  holdfast::Tensor features(holdfast::Shape{count, kFeatures});
  holdfast::Tensor targets(holdfast::Shape{count, 1});
  for (std::int64_t i = 0; i < count; ++i) {
    holdfast::Random random(7, holdfast::Purpose::synthetic_data, 0, static_cast<std::uint64_t>(i));
    float target = 3 + 0.01F * random.normal();
    float weight = 0;
    for (float& feature : features.sample(i)) {
      feature = random.normal();
      target += weight * feature;
      weight += 0.1F;
    }
    targets.sample(i)[0] = target;
  }
  return holdfast::from_tensors(std::move(features), std::move(targets));
}

}  // namespace

int main(int argc, char** argv) {
  holdfast::SuperviseOptions options{.replicas = 2, .run_directory = "custom-run", .shards = 4};
  CLI::App app("A hand-written model that is mirrored, killed and recovered.");
  app.add_option("--replicas", options.replicas, "number of mirrored replicas");
  app.add_option("--run-dir", options.run_directory, "folder of savepoints and journal");
  app.add_flag_callback(
      "--fresh", [&options] { options.start = holdfast::Start::fresh; },
      "start anew, and keep the earlier run under another name");
  app.add_option("--inject", options.recovery.faults, "fault to inject, such as rank=1,step=30,fault=kill");
  CLI11_PARSE(app, argc, argv);
  return holdfast::supervise(argc, argv, options, [](holdfast::Replica& replica) {
    LinearRegression model(kFeatures, 0.02F, 0.9F);
    holdfast::Trainer trainer(replica, model);
    const holdfast::FitResult fit =
        trainer.fit(measurements(1000).shuffle().batch(50),
                    {.epochs = 5, .callbacks = {holdfast::ModelCheckpoint({.every_steps = 10})}});
    if (!replica.is_primary()) return;
    std::printf("steps %ld  loss %.6f  weights %s\n", static_cast<long>(trainer.step()), fit.results.at("loss"),
                trainer.weights_digest().hex().c_str());
  });
}
