#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "holdfast/data/sequences.h"

namespace holdfast {

// Sample i has (i * 5) % 7 ids, 100 * i + 1, 100 * i + 2 and so on: the lengths 0, 5, 3, 1, 6, 4, 2, 0, ...
inline Sequences sentence_ids(std::int64_t count) {
  std::vector<std::vector<std::int32_t>> samples;
  for (std::int64_t i = 0; i < count; ++i) {
    std::vector<std::int32_t> ids;
    for (std::int64_t at = 0; at < i * 5 % 7; ++at) ids.push_back(static_cast<std::int32_t>(100 * i + at + 1));
    samples.push_back(std::move(ids));
  }
  return Sequences(samples);
}

// Inputs "ids" and "length", and the target "kind" i.
inline Dataset sentences(std::int64_t count) {
  Tensor kinds{Shape{count}};
  for (std::int64_t i = 0; i < count; ++i) kinds.sample(i)[0] = static_cast<float>(i);
  return from_sequences({{"ids", sentence_ids(count)}}, {{"kind", std::move(kinds)}});
}

// The arrays of one sample, in seed 1.
class LoadedArrays {
 public:
  LoadedArrays(const Dataset& data, std::int64_t position, std::int64_t epoch = 0)
      : data_(data), inputs_(data.input_layout().words()), targets_(data.target_layout().words()) {
    data_.load(1, epoch, position, {.features = inputs_, .targets = targets_});
  }

  template <ElementType T>
  std::vector<T> input(const char* name) {
    const std::span<T> elements = ArrayRow(data_.input_layout(), inputs_).elements<T>(name);
    return {elements.begin(), elements.end()};
  }
  template <ElementType T>
  std::vector<T> target(const char* name) {
    const std::span<T> elements = ArrayRow(data_.target_layout(), targets_).elements<T>(name);
    return {elements.begin(), elements.end()};
  }

 private:
  Dataset data_;
  std::vector<float> inputs_;
  std::vector<float> targets_;
};

}  // namespace holdfast
