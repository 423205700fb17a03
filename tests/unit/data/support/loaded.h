#pragma once

#include <cstdint>
#include <vector>

#include "holdfast/data/dataset.h"

namespace holdfast {

// The rows of one sample, features and then targets.
inline std::vector<float> loaded(const Dataset& data, std::uint64_t seed, std::int64_t epoch, std::int64_t position) {
  std::vector<float> row(data.input_layout().words() + data.target_layout().words());
  const std::span<float> words = row;
  data.load(
      seed, epoch, position,
      {.features = words.first(data.input_layout().words()), .targets = words.subspan(data.input_layout().words())});
  return row;
}

// The first number of each sample of an epoch, with seed 0.
inline std::vector<float> first_features(const Dataset& data, std::int64_t epoch) {
  std::vector<float> features;
  for (std::int64_t position = 0; position < data.size(); ++position) {
    features.push_back(loaded(data, 0, epoch, position)[0]);
  }
  return features;
}

}  // namespace holdfast
