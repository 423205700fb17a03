#include "integration/models/support/sequence_run.h"

#include <memory>

#include "integration/models/support/step_losses.h"

namespace holdfast {
namespace {

constexpr std::uint64_t kSeed = 0;
constexpr std::int64_t kSequences = kSequenceSteps * kSequenceBatch;
constexpr std::int64_t kIds = 32;
constexpr std::int64_t kLength = 24;      // of a sample for GPT-2 and the LSTM
constexpr std::int64_t kPairLength = 12;  // of source and target
constexpr std::int32_t kPadding = 0, kStart = 1;

Model small_gpt2() {
  return gpt2({.vocabulary = kIds,
               .positions = kLength,
               .width = 32,
               .layers = 2,
               .heads = 4,
               .embedding_dropout = 0,
               .attention_dropout = 0,
               .residual_dropout = 0});
}

Model small_lstm() {
  return lstm_language_model({.vocabulary = kIds, .length = kLength, .width = 32, .units = 48});
}

// Each id hangs on the one before, or is drawn in one case of eight.
SequenceRun windows(const std::string& name, const std::function<Model()>& make_model) {
  Tensor ids(Shape{kSequences, kLength}, DType::i32);
  Tensor next(Shape{kSequences, kLength});
  Random random(kSeed, Purpose::synthetic_data, 0, 0);
  const auto drawn = [&] { return static_cast<std::int32_t>(random.below(kIds)); };
  std::int32_t id = 0;
  for (std::size_t i = 0; i < next.values().size(); ++i) {
    if (i % kLength == 0) id = drawn();
    ids.elements<std::int32_t>()[i] = id;
    id = random.below(8) == 0 ? drawn() : static_cast<std::int32_t>((5 * id + 3) % kIds);
    next.values()[i] = static_cast<float>(id);
  }
  return {.name = name, .make_model = make_model, .inputs = {{"ids", ids}}, .targets = next};
}

Model small_encoder_decoder() {
  return encoder_decoder({.source_vocabulary = kIds,
                          .target_vocabulary = kIds,
                          .source_length = kPairLength,
                          .target_length = kPairLength,
                          .width = 32,
                          .dropout = 0,
                          .padding_id = kPadding});
}

SequenceRun reversed_pairs() {
  Tensor source(Shape{kSequences, kPairLength}, DType::i32);
  Tensor target(Shape{kSequences, kPairLength}, DType::i32);
  Tensor next(Shape{kSequences, kPairLength});
  Random random(kSeed, Purpose::synthetic_data, 1, 0);
  for (std::int64_t sample = 0; sample < kSequences; ++sample) {
    const std::int64_t length = kPairLength - sample % kSequenceBatch;
    const auto at = [&](std::int64_t position) { return static_cast<std::size_t>(sample * kPairLength + position); };
    target.elements<std::int32_t>()[at(0)] = kStart;
    for (std::int64_t i = 0; i < length; ++i) {
      source.elements<std::int32_t>()[at(i)] = static_cast<std::int32_t>(2 + random.below(kIds - 2));
    }
    for (std::int64_t i = 0; i < length; ++i) {
      const std::int32_t id = source.elements<std::int32_t>()[at(length - 1 - i)];
      next.values()[at(i)] = static_cast<float>(id);
      if (i + 1 < kPairLength) target.elements<std::int32_t>()[at(i + 1)] = id;
    }
  }
  return {.name = "encoder_decoder",
          .make_model = small_encoder_decoder,
          .inputs = {{"source", source}, {"target", target}},
          .targets = next,
          .ignored_class = kPadding};
}

SparseCategoricalCrossentropy loss_of(const SequenceRun& run) {
  return SparseCategoricalCrossentropy({.from_logits = true, .ignore_class = run.ignored_class});
}

// PyTorch adds epsilon after it divides by the correction of v, and Holdfast before, as Keras does. This one is too
// small to matter in either place.
Adam optimizer() {
  return Adam{{.learning_rate = kSequenceLearningRate, .epsilon = 1e-12F}};
}

}  // namespace

std::vector<SequenceRun> sequence_runs() {
  return {windows("gpt2", small_gpt2), windows("lstm", small_lstm), reversed_pairs()};
}

std::vector<double> sequence_losses(const SequenceRun& run, int shards) {
  Replica replica = Replica::alone({.seed = kSeed, .shards = shards});
  Trainer trainer(replica, run.make_model(), optimizer(), loss_of(run));
  const auto recorded = std::make_shared<RecordsLosses>();
  trainer.fit(from_tensors(run.inputs, {{"next", run.targets}}).batch(kSequenceBatch),
              {.epochs = 1, .callbacks = {recorded}});
  return recorded->losses;
}

void save_initial(const SequenceRun& run, const std::string& path) {
  Replica replica = Replica::alone({.seed = kSeed});
  Trainer(replica, run.make_model(), optimizer(), loss_of(run)).save(path);
}

}  // namespace holdfast
