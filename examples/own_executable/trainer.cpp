// The program that the replicas of host.cpp execute.
//
//   own_executable_trainer DIRECTORY

#include "holdfast/holdfast.h"

using namespace holdfast;

namespace {

Dataset make_samples() {
  Tensor features{Shape{64, 2}};
  Tensor targets{Shape{64, 1}};
  for (std::int64_t i = 0; i < 64; ++i) {
    const float x = static_cast<float>(i % 8) / 8.0F;
    const float y = static_cast<float>(i / 8) / 8.0F;
    features.sample(i)[0] = x;
    features.sample(i)[1] = y;
    targets.sample(i)[0] = x - 2.0F * y;
  }
  return from_tensors(features, targets);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  return supervise(argc, argv, {.replicas = 2, .run_directory = argv[1], .shards = 2}, [](Replica& replica) {
    Trainer trainer{replica, Sequential{Input{2}, Dense{1}}, Adam{1e-2F}, MeanSquaredError{}};
    trainer.fit(make_samples().shuffle().batch(16), {.epochs = 5});
  });
}
