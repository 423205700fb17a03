// Cross-validation: one run for each fold, then the mean of their losses. Each run has its own directory, and recovers,
// resumes and is inspected like any other run. If the program is killed and started again, it continues where it was:
// folds that have finished return at once.
//
//   folds DIRECTORY [fresh | FOLD]     fresh: train all folds anew; FOLD: train only this fold

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "holdfast/holdfast.h"

using namespace holdfast;

namespace {

constexpr int kFolds = 3;
constexpr std::int64_t kSamples = 600;
constexpr std::int64_t kFeatures = 8;

// The samples of the fold, or all others: y = 0.5 x0 - 0.4 x1 + ... and noise. Every call draws the same values.
Dataset make_samples(int fold, bool are_of_fold) {
  const std::int64_t count = are_of_fold ? kSamples / kFolds : kSamples - kSamples / kFolds;
  Tensor features{Shape{count, kFeatures}};
  Tensor targets{Shape{count, 1}};
  std::uint32_t drawn = 1;
  const auto draw = [&drawn] {
    drawn = drawn * 1664525U + 1013904223U;  // a linear congruential generator (Knuth, TAOCP 2)
    return static_cast<float>(drawn >> 8U) / static_cast<float>(1U << 24U) - 0.5F;
  };
  std::int64_t taken = 0;
  for (std::int64_t i = 0; i < kSamples; ++i) {
    float sum = 0.05F * draw();
    std::vector<float> values(kFeatures);
    for (std::size_t j = 0; j < values.size(); ++j) {
      values[j] = draw();
      sum += (j % 2 == 0 ? 0.1F : -0.1F) * (5.0F - static_cast<float>(j)) * values[j];
    }
    if ((i % kFolds == fold) != are_of_fold) continue;
    std::copy(values.begin(), values.end(), features.sample(taken).begin());
    targets.sample(taken)[0] = sum;
    ++taken;
  }
  return from_tensors(features, targets);
}

void train(Replica& replica, int fold) {
  const Sequential model{Input{kFeatures}, Dense{16, {.activation = Activation::tanh}}, Dense{1}};
  Trainer trainer{replica, model, Adam{1e-2F}, MeanSquaredError{}};
  trainer.fit(make_samples(fold, false).shuffle().batch(25), {.epochs = 6, .callbacks = {ModelCheckpoint{}}});
  trainer.evaluate(make_samples(fold, true).batch(50));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') {
    std::fprintf(stderr, "usage: folds DIRECTORY [fresh | FOLD]\n");
    return 2;
  }
  SuperviseOptions options{.replicas = 2, .shards = 2};
  const std::string which = argc > 2 ? argv[2] : "";
  if (which == "fresh") options.start = Start::fresh;
  double sum = 0;
  for (int fold = 0; fold < kFolds; ++fold) {
    if (!which.empty() && which != "fresh" && which != std::to_string(fold)) continue;
    options.run_directory = std::string(argv[1]) + "/fold" + std::to_string(fold);
    options.seed = static_cast<std::uint64_t>(fold);
    const int code = supervise(argc, argv, options, [fold](Replica& replica) { train(replica, fold); });
    if (code != 0) return code;
    if (is_replica_process()) continue;  // a replica of a later fold needs no results
    const RunResults run = run_results(options.run_directory);
    const double loss = run.calls.back().results.at("loss");
    std::printf("fold %d  loss %.6f  weights %s\n", fold, loss, run.weights_digest.c_str());
    sum += loss;
  }
  if (which.empty() || which == "fresh") std::printf("mean loss %.6f\n", sum / kFolds);
}
