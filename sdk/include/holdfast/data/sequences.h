#pragma once

// Samples of different lengths: sentences, recordings, series. Each sample has elements along its first axis, and its
// length says how many. Arrays of a data set have one shape, so they have room for the longest sample; padded() then
// makes the length that the model takes, and a mask, or weights of positions, tell what is padding.
//
//   const Sequences words(std::vector<std::vector<std::int32_t>>{{4, 7, 2}, {9}, {5, 5}});
//   const Dataset data = from_sequences({{"words", words}}, {{"kind", Tensor({3}, {0, 1, 1})}})
//                            .bucketed(32, {.bounds = {8, 16, 32}})
//                            .padded(64, {.truncation = Truncation::keep_begin, .keep = LengthInput::mask})
//                            .batch(32);
//   // inputs "words" of i32 [64] and "mask" of f32 [64], target "kind" []

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "holdfast/core/tensor.h"
#include "holdfast/data/dataset.h"

namespace holdfast {

// The elements of all samples, one sample after another. Owns them, as a Tensor does.
class Sequences {
 public:
  // `elements` is [sum of the lengths, shape of one element]. A sample may have the length 0. Throws
  // Error{invalid_argument} for a length below 0, and unless the lengths add up to the first axis.
  Sequences(Tensor elements, std::vector<std::int64_t> lengths);
  // Samples of numbers: float, std::int32_t, std::int64_t, std::uint8_t or std::uint16_t.
  template <ElementType T>
  requires(!std::same_as<T, bool>) explicit Sequences(const std::vector<std::vector<T>>& samples)
      : Sequences(joined(samples), lengths_of(samples)) {}
  // One tensor [length, shape of one element] for each sample, such as TextEncoder::encode() gives. Throws
  // Error{invalid_argument} without tensors, and for other shapes or types than those of the first.
  explicit Sequences(const std::vector<Tensor>& samples);

  const Tensor& elements() const { return elements_; }                // of all samples, one after another
  std::span<const std::int64_t> lengths() const { return lengths_; }  // of each sample, in elements
  // The number of samples.
  std::int64_t size() const { return static_cast<std::int64_t>(lengths_.size()); }
  // 0 without samples.
  std::int64_t longest() const;

 private:
  template <ElementType T>
  static Tensor joined(const std::vector<std::vector<T>>& samples) {
    std::vector<T> all;
    for (const std::vector<T>& sample : samples) all.insert(all.end(), sample.begin(), sample.end());
    const Shape shape{static_cast<std::int64_t>(all.size())};
    return Tensor(shape, std::move(all));
  }
  template <ElementType T>
  static std::vector<std::int64_t> lengths_of(const std::vector<std::vector<T>>& samples) {
    std::vector<std::int64_t> lengths;
    for (const std::vector<T>& sample : samples) lengths.push_back(static_cast<std::int64_t>(sample.size()));
    return lengths;
  }

  Tensor elements_;
  std::vector<std::int64_t> lengths_;
};

// One array of a data set whose samples have different lengths.
struct NamedSequences {
  std::string name;     // of the array in a sample
  Sequences sequences;  // one for each sample
};

// A data set with inputs [longest, shape of one element], 0 after the last element of a sample, and then an input
// "length" of i32 []. All inputs have the lengths of the first. Sources and targets of other lengths, as in
// translation, are two data sets that are padded, and then joined by zip().
//
// Targets are tensors [samples, ...], with `sample_weights` as in from_tensors().
//
// Throws Error{invalid_argument} without inputs or samples, if all samples are empty, for other lengths or numbers of
// samples, for an input "length", and for what from_tensors() refuses.
Dataset from_sequences(std::vector<NamedSequences> inputs, std::vector<NamedTensor> targets,
                       std::optional<Tensor> sample_weights = {});

// The same with a target for each position: [longest, shape of one target]. The data set then has weights of positions
// [longest]: that of the sample, or 1, and 0 for padding. Losses, metrics and the mean of a batch pass over padding.
//
//   from_sequences({{"words", words}}, {{"tags", tags}}).padded(64)   // weights [64]
Dataset from_sequences(std::vector<NamedSequences> inputs, std::vector<NamedSequences> targets,
                       std::optional<Tensor> sample_weights = {});

}  // namespace holdfast
