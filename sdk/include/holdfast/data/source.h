#pragma once

// Samples that a program computes or reads itself, one at a time and in any order: files of a format of its own, a
// database, a simulation.
//
//   const auto write_wave = [](std::int64_t sample, const SampleArrays& into) {
//     const float length = 4.0F + static_cast<float>(sample % 100);
//     std::span<float> wave = into.inputs.elements<float>("wave");
//     for (std::size_t i = 0; i < wave.size(); ++i) wave[i] = std::sin(static_cast<float>(i) / length);
//     into.targets.elements<float>("length")[0] = length;
//   };
//   const Dataset waves = from_source(
//       {.size = 10'000, .inputs = {{"wave", {64}}}, .targets = {{"length", {1}}}, .content = "waves 1"}, write_wave);

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "holdfast/core/row_layout.h"
#include "holdfast/data/dataset.h"

namespace holdfast {

// What from_source() must know about samples before it reads one.
struct SourceOptions {
  std::int64_t size = 0;           // samples of an epoch
  std::vector<ArraySpec> inputs;   // the arrays of a sample, in the order of the model's
  std::vector<ArraySpec> targets;  // as inputs; empty: samples have inputs alone
  // Stands for what the samples contain: a version, a digest of a file, parameters. A run that resumes with another
  // text is refused, and so is validation on a source with the same text. Equal samples need equal texts.
  std::string content;
};

// Writes sample `sample` in [0, size) to arrays that are 0 everywhere. Called from any thread, several at once, as
// batches are loaded. It must depend on nothing but the number of the sample. Dataset::load() throws what it throws.
using SampleFunction = std::function<void(std::int64_t sample, const SampleArrays& into)>;

// Throws Error{invalid_argument} for a size of less than 1, no inputs, an empty content, an empty function, and arrays
// that samples cannot have. An i64 that does not fit into 32 bits ends loading with Error{invalid_argument}.
Dataset from_source(SourceOptions options, SampleFunction function);

}  // namespace holdfast
