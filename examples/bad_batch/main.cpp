// A training that fails because one number of its data is not finite, and the ways to find that out. The page
// docs/guide/debugging.md shows them one after another.
//
//   bad_batch [--run-dir DIR] [--debug] [--look EPOCH BATCH] [--finite] [--few]

#include <holdfast/holdfast.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <utility>
#include <vector>

using namespace holdfast;

namespace {

struct Asked {
  bool debugs = false;
  std::vector<std::int64_t> look{};  // the epoch and batch to show; none if empty
  bool is_finite = false;            // whether bad samples are left out
  bool takes_few = false;
};

// Points with two features; the target is a linear function of them. One feature is missing.
Dataset points() {
  Tensor features{Shape{512, 2}};
  Tensor targets{Shape{512, 1}};
  for (std::int64_t i = 0; i < 512; ++i) {
    // A sequence for each point, so that a point does not depend on those before it.
    Random random(5, Purpose::user, 0, static_cast<std::uint64_t>(i));
    features.sample(i)[0] = random.normal();
    features.sample(i)[1] = random.normal();
    targets.sample(i)[0] = features.sample(i)[0] - 2 * features.sample(i)[1];
  }
  // The sample that docs/guide/debugging.md looks for.
  features.sample(300)[1] = std::numeric_limits<float>::quiet_NaN();
  return from_tensors(std::move(features), std::move(targets));
}

bool has_finite_inputs(const SampleArrays& sample) {
  return std::ranges::all_of(sample.inputs.elements<float>(0), [](float number) { return std::isfinite(number); });
}

// Features and targets of a batch, as the step that trains on it gets them.
std::pair<Tensor, Tensor> batch_of(const Dataset& batches, std::uint64_t seed, std::int64_t epoch, std::int64_t batch) {
  const std::int64_t first = batch * batches.batch_size();
  const std::int64_t count = std::min(batches.batch_size(), batches.size() - first);
  Tensor features{Shape{count, 2}};
  Tensor targets{Shape{count, 1}};
  for (std::int64_t i = 0; i < count; ++i) {
    batches.load(seed, epoch, first + i, {features.sample(i), targets.sample(i)});
  }
  return {std::move(features), std::move(targets)};
}

void show_batch(const Dataset& batches, const Replica& replica, std::int64_t epoch, std::int64_t batch) {
  if (batch >= batches.batches()) {
    throw Error(ErrorCode::invalid_argument, "there is no batch " + std::to_string(batch) +
                                                 "; an epoch has the batches 0 to " +
                                                 std::to_string(batches.batches() - 1));
  }
  // The batch is the same in all replicas, so one of them shows it.
  if (!replica.is_primary()) return;
  const auto [features, targets] = batch_of(batches, replica.seed(), epoch, batch);
  for (std::int64_t i = 0; i < targets.shape()[0]; ++i) {
    std::printf("%g %g -> %g\n", features.sample(i)[0], features.sample(i)[1], targets.sample(i)[0]);
  }
  // A replica whose training fails ends without a flush, and a pipe would get nothing.
  std::fflush(stdout);
}

// The largest weight of each array.
void show_weights(const TrainingContext& context) {
  std::printf("step %ld", static_cast<long>(context.step()));
  for (const WeightArray& array : context.weights()) {
    float largest = 0;
    for (const float weight : array.values) largest = std::max(largest, std::abs(weight));
    std::printf("  %s %.2f", array.name.c_str(), largest);
  }
  std::printf("\n");
}

Sequential small_network() {
  return Sequential{Input{2}, Dense{8, {.activation = Activation::tanh, .name = "hidden"}}, Dense{1}};
}

void train(Replica& replica, const Asked& asked) {
  const Dataset samples = asked.is_finite ? points().filter(has_finite_inputs, "finite inputs") : points();
  const Dataset batches = samples.shuffle().batch(16);
  if (!asked.look.empty()) show_batch(batches, replica, asked.look[0], asked.look[1]);
  Trainer trainer{replica, small_network(), Adam{0.01F}, MeanSquaredError{}};
  for (const TrainingStep& at : trainer.steps(batches, {.epochs = 5, .callbacks = {ModelCheckpoint{}}})) {
    if (asked.debugs) show_weights(at.context);
  }
}

// Whether the model learns 32 samples by heart, and what its hidden layer makes of them.
void train_on_few() {
  const Dataset few = points().take(32).batch(32);
  const Sequential model = small_network();
  Replica replica = Replica::alone();
  Trainer trainer{replica, model, Adam{0.01F}, MeanSquaredError{}};
  std::printf("loss %.4f\n", trainer.fit(few, {.epochs = 500}).results.at("loss"));

  const Tensor hidden = model.output_of("hidden").predict(batch_of(few, replica.seed(), 0, 0).first);
  const auto [least, most] = std::ranges::minmax(hidden.values());
  std::printf("hidden gives %.2f to %.2f\n", least, most);
}

}  // namespace

int main(int argc, char** argv) {
  Asked asked;
  SuperviseOptions options{.replicas = 2, .run_directory = "run", .shards = 2};
  CLI::App app("A training that fails because one number of its data is not finite");
  app.add_option("--run-dir", options.run_directory);
  app.add_flag("--debug", asked.debugs, "train in this process, and show the weights after each step");
  app.add_option("--look", asked.look, "show the batch of an epoch")->expected(2)->check(CLI::NonNegativeNumber);
  app.add_flag("--finite", asked.is_finite, "leave out samples that are not finite");
  app.add_flag("--few", asked.takes_few, "train on 32 samples alone, without a run directory");
  CLI11_PARSE(app, argc, argv);
  if (asked.takes_few) {
    train_on_few();
    return 0;
  }

  if (asked.debugs) options.alone = true;
  return supervise(argc, argv, options, [&](Replica& replica) { train(replica, asked); });
}
