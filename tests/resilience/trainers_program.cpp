// Two Trainers in one run: a network learns, and a head then learns on the kept outputs of a part of it. For tests of
// deaths.
//
//   trainers_program --run-dir DIR [--replicas 2] [--spares 0] [--inject FAULT]... [--more-epochs N]
//
// The first Trainer makes 9 steps, the second one 27.

#include <CLI/CLI.hpp>
#include <string>

#include "holdfast/holdfast.h"

namespace {

using namespace holdfast;

constexpr std::int64_t kSamples = 90;

// Four classes of points; `classes` of them.
Dataset drawn_points(std::uint64_t classes, std::uint64_t seed) {
  Tensor features{Shape{kSamples, 6}};
  Tensor labels{Shape{kSamples}};
  for (std::int64_t i = 0; i < kSamples; ++i) {
    Random random(seed, Purpose::user, 0, static_cast<std::uint64_t>(i));
    const std::uint64_t label = random.below(classes);
    labels.sample(i)[0] = static_cast<float>(label);
    for (float& value : features.sample(i)) value = random.normal() + static_cast<float>(label);
  }
  return from_tensors(features, labels);
}

void train(Replica& replica, std::int64_t more_epochs) {
  const SparseCategoricalCrossentropy loss{{.from_logits = true}};
  Model first = Sequential{Input{6}, Dense{16, {.activation = Activation::relu, .name = "features"}}, Dense{4}};
  {
    Trainer trainer(replica, first, Adam{0.01F}, loss);
    trainer.fit(drawn_points(4, 5).shuffle().batch(10), {.epochs = 1 + more_epochs, .callbacks = {CSVLogger{}}});
    trainer.evaluate(drawn_points(4, 6).batch(20));
  }
  const Dataset features = cached_outputs(first.output_of("features"), drawn_points(3, 7),
                                          {.file = replica.run_directory() + "/features.cache", .block = 16});
  Trainer trainer(replica, Sequential{Input{16}, Dropout{0.1F}, Dense{3}}, Adam{0.02F}, loss);
  trainer.fit(features.shuffle().batch(10),
              {.epochs = 3, .callbacks = {ModelCheckpoint{{.every_steps = 5}}, CSVLogger{}}});
  trainer.evaluate(features.batch(20));
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Trains two models, one after the other.");
  SuperviseOptions options{.replicas = 2, .shards = 4};
  std::int64_t more_epochs = 0;
  app.add_option("--run-dir", options.run_directory)->required();
  app.add_option("--replicas", options.replicas);
  app.add_option("--spares", options.recovery.spares);
  app.add_option("--inject", options.recovery.faults);
  app.add_option("--more-epochs", more_epochs);
  CLI11_PARSE(app, argc, argv);
  return supervise(argc, argv, options, [&](Replica& replica) { train(replica, more_epochs); });
}
