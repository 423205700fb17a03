#pragma once

// 50 steps of the language models of holdfast/nn/models.h, as scripts/tests/sequence_losses.py repeats them in PyTorch.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/holdfast.h"

namespace holdfast {

constexpr std::int64_t kSequenceSteps = 50;
constexpr std::int64_t kSequenceBatch = 8;
constexpr float kSequenceLearningRate = 3e-3F;  // of Adam

struct SequenceRun {
  std::string name;
  std::function<Model()> make_model;  // a Model that was trained goes on from there
  std::vector<NamedTensor> inputs;    // ids, i32 [400, length]: batch after batch
  Tensor targets;                     // f32 [400, length]
  std::optional<std::int64_t> ignored_class{};
};

// A GPT-2 and an LSTM of sequences of ids, and an encoder-decoder that reverses sources of different lengths. Its
// padding is in the mask of attention and is not a target; each batch has as much of it.
std::vector<SequenceRun> sequence_runs();

// The loss of each step. One shard is the whole batch.
std::vector<double> sequence_losses(const SequenceRun& run, int shards);
// A savepoint of the weights that sequence_losses() begins with.
void save_initial(const SequenceRun& run, const std::string& path);

}  // namespace holdfast
