// Trains twice, the second time under a fault, and compares the weights.
//
//   injected_fault [FOLDER] [FAULT]

#include <holdfast/holdfast.h>

#include <cstdio>
#include <string>

using namespace holdfast;

namespace {

// Points with two features; the target is a linear function of them.
Dataset points() {
  Tensor features{Shape{512, 2}};
  Tensor targets{Shape{512, 1}};
  for (std::int64_t i = 0; i < 512; ++i) {
    Random random(5, Purpose::user, 0, static_cast<std::uint64_t>(i));
    features.sample(i)[0] = random.normal();
    features.sample(i)[1] = random.normal();
    targets.sample(i)[0] = features.sample(i)[0] - 2 * features.sample(i)[1];
  }
  return from_tensors(std::move(features), std::move(targets));
}

void train(Replica& replica) {
  const Sequential model{Input{2}, Dense{8, {.activation = Activation::tanh}}, Dense{1}};
  Trainer trainer{replica, model, Adam{0.01F}, MeanSquaredError{}};
  trainer.fit(points().shuffle().batch(16), {.epochs = 5, .callbacks = {ModelCheckpoint{}}});
}

}  // namespace

int main(int argc, char** argv) {
  const std::string folder = argc > 1 ? argv[1] : "runs";
  const std::string fault = argc > 2 ? argv[2] : "rank=1,step=120,fault=kill";

  SuperviseOptions options{.replicas = 2, .run_directory = folder + "/undisturbed", .shards = 2};
  if (const int code = supervise(argc, argv, options, train); code != 0) return code;
  options.run_directory = folder + "/disturbed";
  options.recovery.faults = {fault};
  if (const int code = supervise(argc, argv, options, train); code != 0) return code;

  const std::string undisturbed = run_results(folder + "/undisturbed").weights_digest;
  const std::string disturbed = run_results(folder + "/disturbed").weights_digest;
  std::printf("undisturbed %s\ndisturbed   %s\n", undisturbed.c_str(), disturbed.c_str());
  return disturbed == undisturbed ? 0 : 1;
}
