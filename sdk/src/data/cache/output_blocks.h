#pragma once

// Computes the outputs of a model for the samples of a stage, in blocks of a fixed number of samples. Each block is
// computed by one thread with kernels for that number, so its bits depend on nothing else.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "data/stages/stage.h"
#include "holdfast/nn/model.h"
#include "nn/program/model_program.h"

namespace holdfast {

// The layouts of samples that have the outputs of `part` as inputs and the targets of `before`.
SampleLayouts layouts_of_outputs(const Model& part, const Stage& before);

// For one thread, which may start others.
class OutputBlocks {
 public:
  // Makes nothing yet. `part` and `before` must outlive this. Both numbers are at least 1.
  OutputBlocks(const Model& part, const Stage& before, std::int64_t block, int threads);

  // Rows of one sample after the other: its outputs, then its targets.
  std::size_t row_words() const { return layouts_.inputs.words() + layouts_.targets.words(); }
  // Writes the row of a sample. Samples must come in their order, from 0 on: several blocks are computed at once when
  // the first sample of them is asked for. Throws what loading throws, and the error of a sample that the model cannot
  // take; of several failures, the first one in the order of the samples.
  void write_row(std::int64_t sample, std::span<float> row);

 private:
  // What one thread computes with.
  struct Worker {
    explicit Worker(const Model& part) : program(part, 1) {}
    ModelProgram program;
    std::vector<float> inputs{};                  // rows of the block's samples
    std::vector<std::vector<float>> converted{};  // an array for each input of the model
  };

  void compute_group(std::int64_t first_block);
  void compute_block(Worker& worker, std::int64_t block, std::span<float> rows) const;
  void load_block(Worker& worker, std::int64_t first, std::span<float> rows) const;
  ModelProgram::Inputs inputs_of(Worker& worker) const;

  const Model& part_;
  const Stage& before_;
  const SampleLayouts layouts_;
  const std::int64_t block_;
  const std::int64_t threads_;
  std::vector<float> parameters_;
  std::vector<float> buffers_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<float> group_;  // rows of as many blocks as there are workers
};

}  // namespace holdfast
