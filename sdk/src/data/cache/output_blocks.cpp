// Libraries choose kernels by the number of samples, and sums in other kernels have another order. So all blocks have
// one number of samples, the last one too: its missing samples are copies of the last. Then the bits of a sample depend
// on its block alone, and not on which samples a replica or a batch has. docs/decisions/caches.md

#include "data/cache/output_blocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <thread>

#include "core/sample_error.h"
#include "holdfast/base/threads.h"
#include "nn/model/description.h"

namespace holdfast {

SampleLayouts layouts_of_outputs(const Model& part, const Stage& before) {
  std::vector<ArraySpec> arrays;
  for (const ModelArray& output : part.outputs()) arrays.push_back({.name = output.name, .shape = output.spec.shape});
  // A data set of one array needs no name for it, and plain functions of map() take it.
  if (arrays.size() == 1) arrays[0].name.clear();
  return {.inputs = RowLayout(std::move(arrays)),
          .targets = before.layouts().targets,
          .has_weights = before.layouts().has_weights,
          .has_weights_of_targets = before.layouts().has_weights_of_targets};
}

OutputBlocks::OutputBlocks(const Model& part, const Stage& before, std::int64_t block, int threads)
    : part_(part),
      before_(before),
      layouts_(layouts_of_outputs(part, before)),
      block_(block),
      // No more than there are blocks.
      threads_(std::min<std::int64_t>(threads, (before.size() + block - 1) / block)),
      // Copies: the model may be trained on while this object lives, and all blocks must see the same weights.
      parameters_(part.parameter_values().begin(), part.parameter_values().end()),
      buffers_(part.buffer_values().begin(), part.buffer_values().end()) {}

void OutputBlocks::write_row(std::int64_t sample, std::span<float> row) {
  // A group is as many blocks as there are threads. Its first sample makes it, and the others only copy their rows.
  const std::int64_t group = threads_ * block_;
  if (sample % group == 0) compute_group(sample / block_);
  std::copy_n(group_.begin() + (sample % group) * static_cast<std::int64_t>(row_words()), row_words(), row.begin());
}

void OutputBlocks::compute_group(std::int64_t first_block) {
  const std::size_t words = static_cast<std::size_t>(block_) * row_words();
  // At the first group and not in the constructor: a cache file that exists needs no programs of the model.
  while (static_cast<std::int64_t>(workers_.size()) < threads_) workers_.push_back(std::make_unique<Worker>(part_));
  group_.resize(workers_.size() * words);
  std::vector<std::exception_ptr> failures(workers_.size());
  const auto compute = [&](std::size_t index) {
    const std::int64_t block = first_block + static_cast<std::int64_t>(index);
    if (block * block_ >= before_.size()) return;
    try {
      compute_block(*workers_[index], block, std::span(group_).subspan(index * words, words));
    } catch (...) {
      failures[index] = std::current_exception();
    }
  };
  {
    // The end of this scope joins them, so all failures are there below. The calling thread computes the first block.
    std::vector<std::jthread> threads;
    for (std::size_t index = 1; index < workers_.size(); ++index) {
      threads.push_back(
          start_thread<std::jthread>("a thread that computes outputs", [&compute, index] { compute(index); }));
    }
    compute(0);
  }
  // In the order of the samples, so that the error does not depend on the threads.
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

void OutputBlocks::compute_block(Worker& worker, std::int64_t block, std::span<float> rows) const {
  const std::int64_t first = block * block_;
  load_block(worker, first, rows);
  try {
    const ModelProgram::Outputs& outputs =
        worker.program.run_inference(inputs_of(worker), block_, parameters_, buffers_);
    for (std::size_t output = 0; output < outputs.size(); ++output) {
      const std::int64_t elements = layouts_.inputs.arrays()[output].shape.element_count();
      const auto* from = reinterpret_cast<const float*>(outputs[output]);
      float* to = rows.data() + layouts_.inputs.first_word(output);
      for (std::int64_t i = 0; i < block_; ++i, from += elements, to += row_words()) std::copy_n(from, elements, to);
    }
  } catch (const SampleError& error) {
    const std::int64_t sample = std::min(first + error.sample(), before_.size() - 1);
    // The model counts samples within a block. A copy at the end of the last block stands for the last sample.
    throw error.renamed(fmt::format("sample {} of the data set given to cached_outputs()", sample), sample);
  }
}

void OutputBlocks::load_block(Worker& worker, std::int64_t first, std::span<float> rows) const {
  const std::size_t words = before_.feature_words();
  worker.inputs.resize(static_cast<std::size_t>(block_) * words);
  // Words that belong to no output must not hold what an earlier block left there: samples have digests.
  std::ranges::fill(rows, 0.0F);
  for (std::int64_t i = 0; i < block_; ++i) {
    const auto index = static_cast<std::size_t>(i);
    const std::span<float> features = std::span(worker.inputs).subspan(index * words, words);
    if (first + i < before_.size()) {
      const std::span<float> row = rows.subspan(index * row_words(), row_words());
      before_.load(0, 0, first + i, {.features = features, .targets = row.subspan(layouts_.inputs.words())});
    } else {
      // A copy of the row before, which is the last sample or a copy of it. A block
      // always begins with a sample that exists.
      std::copy_n(features.data() - words, words, features.begin());
    }
  }
}

ModelProgram::Inputs OutputBlocks::inputs_of(Worker& worker) const {
  const RowLayout& layout = before_.layouts().inputs;
  worker.converted.resize(layout.arrays().size());
  ModelProgram::Inputs arrays;
  for (std::size_t array = 0; array < layout.arrays().size(); ++array) {
    const ArraySpec& spec = layout.arrays()[array];
    const compute::RowConversion conversion{.from = spec.dtype,
                                            .to = computed_type(spec.dtype),
                                            .rows = block_,
                                            .elements = spec.shape.element_count(),
                                            .row_words = static_cast<std::int64_t>(layout.words()),
                                            .first_word = static_cast<std::int64_t>(layout.first_word(array))};
    std::vector<float>& converted = worker.converted[array];
    converted.resize(static_cast<std::size_t>(block_ * conversion.elements));
    // Types become those that models compute with, as in training.
    worker.program.backend().array_kernels().convert(conversion, worker.inputs.data(), converted.data());
    arrays.push_back(reinterpret_cast<const std::byte*>(converted.data()));
  }
  return arrays;
}

}  // namespace holdfast
