// Trains under a watchdog, then loads a savepoint without one, in a plain function call.

#include <cstdio>
#include <filesystem>
#include <string>

#include "holdfast/holdfast.h"

namespace {

holdfast::Dataset points() {
  holdfast::Tensor features(holdfast::Shape{64, 2});
  holdfast::Tensor targets(holdfast::Shape{64, 1});
  for (std::int64_t i = 0; i < 64; ++i) {
    holdfast::Random random(5, holdfast::Purpose::user, 0, static_cast<std::uint64_t>(i));
    features.sample(i)[0] = random.normal();
    features.sample(i)[1] = random.normal();
    targets.sample(i)[0] = features.sample(i)[0] - 2 * features.sample(i)[1];
  }
  return holdfast::from_tensors(std::move(features), std::move(targets));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string folder = argv[1];
  const int exit_code =
      holdfast::supervise(argc, argv, {.replicas = 2, .run_directory = folder}, [](holdfast::Replica& replica) {
        holdfast::Sequential model{holdfast::Input{2}, holdfast::Dense{8, {.activation = holdfast::Activation::tanh}},
                                   holdfast::Dense{1}};
        holdfast::Trainer trainer(replica, model, holdfast::SGD(0.05F), holdfast::MeanSquaredError{});
        trainer.fit(points().shuffle().batch(16), {.epochs = 3, .callbacks = {holdfast::ModelCheckpoint{}}});
      });
  if (exit_code != 0 || holdfast::is_replica_process()) return exit_code;
  const holdfast::Sequential model = holdfast::load_model(folder + "/savepoint-0000000012.h5");
  const holdfast::Tensor output = model.predict(holdfast::Tensor(holdfast::Shape{1, 2}, {1.0F, 0.5F}));
  std::printf("consumer: %f, %lld numbers\n", static_cast<double>(output.values()[0]),
              static_cast<long long>(output.shape()[1]));
  return output.shape()[1] == 1 ? 0 : 1;
}
