// An encoder-decoder learns to write sequences of different lengths backwards:
//
//   reversal [--replicas N | --devices D,D...] [--shards N] [--steps N] [--seed N] [--run-dir DIR] [--report FILE]
//            [--inject rank=1,step=30,fault=kill]

#include "example_options.h"
#include "holdfast/holdfast.h"

namespace {

using namespace holdfast;

constexpr std::int64_t kBatch = 32;
constexpr std::int64_t kLength = 12;  // of the longest sequence
constexpr std::int64_t kIds = 20;
constexpr std::int32_t kPadding = 0, kStart = 1;  // ids of their own

// Attention is dropped out, and no position looks at padding.
Model reversal_model() {
  return encoder_decoder({.source_vocabulary = kIds,
                          .target_vocabulary = kIds,
                          .source_length = kLength,
                          .target_length = kLength,
                          .width = 32,
                          .layers = 1,
                          .dropout = 0.1F,
                          .padding_id = kPadding});
}

// The decoder gets the reversed sequence one position late, and learns what comes next. Padding does not count.
Dataset sequences(std::int64_t samples, std::uint64_t seed) {
  std::vector<std::int32_t> sources, targets, next;
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    Random random(seed, Purpose::user, 0, static_cast<std::uint64_t>(sample));
    std::vector<std::int32_t> ids(static_cast<std::size_t>(3 + random.below(kLength - 2)));
    for (std::int32_t& id : ids) id = static_cast<std::int32_t>(2 + random.below(kIds - 2));
    std::vector<std::int32_t> reversed(ids.rbegin(), ids.rend());
    for (std::vector<std::int32_t>* padded : {&ids, &reversed}) padded->resize(kLength, kPadding);
    sources.insert(sources.end(), ids.begin(), ids.end());
    targets.push_back(kStart);
    targets.insert(targets.end(), reversed.begin(), reversed.end() - 1);
    next.insert(next.end(), reversed.begin(), reversed.end());
  }
  const Shape shape = {samples, kLength};
  return from_tensors({{"source", Tensor(shape, sources)}, {"target", Tensor(shape, targets)}},
                      {{"next", Tensor(shape, next)}});
}

void train(Replica& replica, const ExampleOptions& options) {
  Trainer trainer(replica, reversal_model(), Adam{{.learning_rate = 0.003F}},
                  SparseCategoricalCrossentropy{{.from_logits = true, .ignore_class = kPadding}});
  const FitResult fit = trainer.fit(sequences(options.steps * kBatch, options.run.seed).shuffle().batch(kBatch),
                                    {.epochs = 1, .callbacks = {ModelCheckpoint({.every_steps = 20})}});
  if (replica.is_primary()) write_report(trainer, {{"loss", fit.results.at("loss")}}, options);
}

}  // namespace

int main(int argc, char** argv) {
  ExampleOptions options = {.description = "An encoder-decoder that is mirrored, killed and recovered.",
                            .run = {.replicas = 2, .run_directory = "reversal-run", .shards = 4},
                            .steps = 100};
  if (const std::optional<int> exit_code = read_options(argc, argv, options)) return *exit_code;
  return supervise(argc, argv, options.run, [&](Replica& replica) { train(replica, options); });
}
