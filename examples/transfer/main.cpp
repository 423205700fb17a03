// Transfer learning: a network learns the digits 0 to 4. Its layers are then frozen under a new head, which learns the
// digits 5 to 9, and at last all layers are tuned at a lower rate. Both runs are in one program, and survive failures.
//
//   transfer [--replicas N | --devices D,D...] [--shards N] [--steps N] [--seed N] [--run-dir DIR] [--report FILE]
//            [--inject rank=1,step=30,fault=kill] [--keep-features]
//
// --keep-features: the head is trained by a Trainer of its own, on outputs of the frozen layers that are computed once.

#include "drawn_digits.h"
#include "example_options.h"
#include "holdfast/holdfast.h"

namespace {

using namespace holdfast;

constexpr std::int64_t kBatch = 20;
constexpr std::int64_t kStepsOfAnEpoch = 10;

// An epoch of five kinds of digits, from `first` on.
Dataset digits_from(int first, std::uint64_t seed) {
  const auto is_wanted = [first](const SampleArrays& sample) {
    const float digit = sample.targets.elements<float>(0)[0];
    return digit >= static_cast<float>(first) && digit < static_cast<float>(first + 5);
  };
  return drawn_digits(4 * kBatch * kStepsOfAnEpoch, seed)
      .filter(is_wanted, "five digits")
      .take(kBatch * kStepsOfAnEpoch);
}

// The same digits, labelled 0 to 4.
Dataset labelled_from_0(const Dataset& digits, int first) {
  const auto count_from_0 = [first](Sample sample, Random&) { sample.targets[0] -= static_cast<float>(first); };
  return digits.map(count_from_0, "count from 0");
}

Dataset five_digits(int first, std::uint64_t seed) {
  return labelled_from_0(digits_from(first, seed), first);
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

void report_test(const Replica& replica, Trainer& trainer, const ExampleOptions& asked) {
  const Logs results = trainer.evaluate(five_digits(5, asked.run.seed + 1).batch(kBatch));
  if (!replica.is_primary()) return;
  write_report(trainer, {{"loss", results.at("loss")}, {"accuracy", results.at("sparse_categorical_accuracy")}}, asked);
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
  report_test(replica, trainer, asked);
}

// In each epoch the frozen layers would compute the same outputs, so they do it once. Where they are most of the work,
// the epochs of the head take a fraction of the time.
void transfer_with_kept_features(Replica& replica, const ExampleOptions& asked) {
  const Model features = load_model(first_weights(asked)).output_of("features");
  const Dataset kept =
      cached_outputs(features, digits_from(5, asked.run.seed), {.file = asked.run.run_directory + "/features.cache"});
  const Value outputs = input(features.output_shape());
  const Model head(outputs, Dense{5, {.name = "logits"}}(outputs));
  const std::int64_t epochs = asked.steps / kStepsOfAnEpoch / 2;
  const FitOptions options = {.epochs = epochs, .callbacks = {ModelCheckpoint{{.every_steps = 10}}}};
  const SparseCategoricalCrossentropy loss{{.from_logits = true}};
  {
    Trainer trainer(replica, head, Adam{3e-3F}, loss, {SparseCategoricalAccuracy{}});
    trainer.fit(labelled_from_0(kept, 5).shuffle().batch(kBatch), options);
  }
  // Both parts together are the next Trainer's model.
  const Value x = input({28, 28, 1});
  Model model(x, head.call(features.call({x}, "base"), "head").at(0));
  model.take_weights(features, "base");
  model.take_weights(head, "head");
  Trainer trainer(replica, model, Adam{1e-4F}, loss, {SparseCategoricalAccuracy{}});
  trainer.fit(five_digits(5, asked.run.seed).shuffle().batch(kBatch), options);
  report_test(replica, trainer, asked);
}

}  // namespace

int main(int argc, char** argv) {
  ExampleOptions asked = {.description = "A network whose layers are frozen, reused and tuned, killed and recovered.",
                          .run = {.replicas = 2, .run_directory = "transfer-run", .shards = 4},
                          .steps = 80,
                          .may_keep_features = true};
  if (const std::optional<int> exit_code = read_options(argc, argv, asked)) return *exit_code;
  SuperviseOptions first = asked.run;
  first.run_directory += "-first";
  first.recovery.faults.clear();
  const int code = supervise(argc, argv, first, [&](Replica& replica) { train_first(replica, asked); });
  if (code != 0) return code;
  return supervise(argc, argv, asked.run, [&](Replica& replica) {
    asked.keeps_features ? transfer_with_kept_features(replica, asked) : transfer(replica, asked);
  });
}
