// The small training program that train_test.cpp tests. It has no code for faults.

#include <string>

#include "holdfast/holdfast.h"

namespace {

using namespace holdfast;

constexpr std::int64_t kPoints = 512;

// Points with two features; the target is a linear function of them.
Dataset points() {
  Tensor features(Shape{kPoints, 2});
  Tensor targets(Shape{kPoints, 1});
  for (std::int64_t i = 0; i < kPoints; ++i) {
    Random random(5, Purpose::user, 0, static_cast<std::uint64_t>(i));
    features.sample(i)[0] = random.normal();
    features.sample(i)[1] = random.normal();
    targets.sample(i)[0] = features.sample(i)[0] - 2 * features.sample(i)[1];
  }
  return from_tensors(std::move(features), std::move(targets));
}

}  // namespace

int main(int argc, char** argv) {
  const SuperviseOptions options{.replicas = 2, .run_directory = argc > 1 ? argv[1] : "run"};
  return supervise(argc, argv, options, [](Replica& replica) {
    const Sequential model{Input{2}, Dense{8, {.activation = Activation::tanh}}, Dense{1}};
    Trainer trainer{replica, model, SGD{0.05F}, MeanSquaredError{}};
    trainer.fit(points().shuffle().batch(16), {.epochs = 4, .callbacks = {ModelCheckpoint{{.every_steps = 16}}}});
  });
}
