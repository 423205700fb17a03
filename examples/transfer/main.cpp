// Transfer learning: a network learns the digits 0 to 4. Its layers are then frozen under a new head, which learns the
// digits 5 to 9, and at last all layers are tuned at a lower rate. Both runs are in one program, and survive failures.
//
//   transfer [--replicas N | --devices D,D...] [--shards N] [--steps N] [--seed N] [--run-dir DIR] [--report FILE]
//            [--inject rank=1,step=30,fault=kill]

#include "drawn_digits.h"
#include "example_options.h"
#include "holdfast/holdfast.h"

namespace {

using namespace holdfast;

constexpr std::int64_t kBatch = 20;
constexpr std::int64_t kStepsOfAnEpoch = 10;

// An epoch of five kinds of digits, from `first` on, labelled 0 to 4.
Dataset five_digits(int first, std::uint64_t seed) {
  const auto is_wanted = [first](const SampleArrays& sample) {
    const float digit = sample.targets.elements<float>(0)[0];
    return digit >= static_cast<float>(first) && digit < static_cast<float>(first + 5);
  };
  const auto count_from_0 = [first](Sample sample, Random&) { sample.targets[0] -= static_cast<float>(first); };
  return drawn_digits(4 * kBatch * kStepsOfAnEpoch, seed)
      .filter(is_wanted, "five digits")
      .take(kBatch * kStepsOfAnEpoch)
      .map(count_from_0, "count from 0");
}

Model first_network() {
  const Value x = input({28, 28, 1});
  const Value fine = MaxPooling2D{2}(Conv2D{8, 3, {.activation = Activation::relu, .name = "conv1"}}(x));
  const Value coarse = MaxPooling2D{2}(Conv2D{16, 3, {.use_bias = false, .name = "conv2"}}(fine));
  const Value features = ActivationLayer{Activation::relu}(BatchNormalization{{.name = "norm"}}(coarse));
  return Model(x, Dense{5}(Flatten{{.name = "features"}}(features)));
}

std::string first_weights(const ExampleOptions& asked) {
  return asked.run.run_directory + "-first/network.h5";
}

void train_first(Replica& replica, const ExampleOptions& asked) {
  Trainer trainer(replica, first_network(), Adam{3e-3F}, SparseCategoricalCrossentropy{{.from_logits = true}});
  trainer.fit(five_digits(0, asked.run.seed).shuffle().batch(kBatch), {.epochs = 3});
  if (replica.is_primary()) trainer.save(first_weights(asked));
}

void transfer(Replica& replica, const ExampleOptions& asked) {
  // What was learned is below "base/", and the head is drawn anew.
  const Model features = load_model(first_weights(asked)).output_of("features").frozen();
  const Value x = input({28, 28, 1});
  Model model(x, Dense{5, {.name = "head"}}(features.call({x}, "base").at(0)));
  model.take_weights(features, "base", asked.run.seed);
  const Dataset training = five_digits(5, asked.run.seed).shuffle().batch(kBatch);
  const std::int64_t epochs = asked.steps / kStepsOfAnEpoch / 2;
  const FitOptions options = {.epochs = epochs, .callbacks = {ModelCheckpoint{{.every_steps = 10}}}};

  Trainer trainer(replica, model, Adam{3e-3F}, SparseCategoricalCrossentropy{{.from_logits = true}},
                  {SparseCategoricalAccuracy{}});
  trainer.fit(training, options);
  // From here on all layers are trained, carefully.
  trainer.compile(model.unfrozen(), Adam{1e-4F});
  trainer.fit(training, options);
  const Logs results = trainer.evaluate(five_digits(5, asked.run.seed + 1).batch(kBatch));
  if (!replica.is_primary()) return;
  write_report(trainer, {{"loss", results.at("loss")}, {"accuracy", results.at("sparse_categorical_accuracy")}}, asked);
}

}  // namespace

int main(int argc, char** argv) {
  ExampleOptions asked = {.description = "A network whose layers are frozen, reused and tuned, killed and recovered.",
                          .run = {.replicas = 2, .run_directory = "transfer-run", .shards = 4},
                          .steps = 80};
  if (const std::optional<int> exit_code = read_options(argc, argv, asked)) return *exit_code;
  SuperviseOptions first = asked.run;
  first.run_directory += "-first";
  first.faults.clear();
  const int code = supervise(argc, argv, first, [&](Replica& replica) { train_first(replica, asked); });
  if (code != 0) return code;
  return supervise(argc, argv, asked.run, [&](Replica& replica) { transfer(replica, asked); });
}
