#pragma once

// Chains of stages that are drawn at random, for properties that all data sets have. A number names a chain.

#include <cstdint>
#include <vector>

#include "holdfast/base/error.h"
#include "holdfast/core/random.h"
#include "holdfast/data/sequences.h"
#include "holdfast/data/source.h"
#include "unit/data/support/numbers.h"

namespace holdfast {

// Sample i has 1 + i % 4 numbers: i, i + 1, ... So the first element is that of numbers(), and stages fit both.
inline Dataset number_sequences(std::int64_t count) {
  std::vector<std::vector<float>> samples;
  for (std::int64_t i = 0; i < count; ++i) {
    std::vector<float> sample;
    for (std::int64_t at = 0; at <= i % 4; ++at) sample.push_back(static_cast<float>(i + at));
    samples.push_back(std::move(sample));
  }
  const Sequences sequences(samples);
  return from_sequences({{"values", sequences}}, {{"next", sequences}});
}

// The target is one of three classes.
inline Dataset numbers_of_classes(std::int64_t count) {
  Tensor features{Shape{count, 2}};
  Tensor targets{Shape{count}};
  for (std::int64_t i = 0; i < count; ++i) {
    features.sample(i)[0] = static_cast<float>(i);
    targets.sample(i)[0] = static_cast<float>(i % 3);
  }
  return from_tensors(std::move(features), std::move(targets));
}

// Each seventh sample cannot be loaded, and is left out.
inline Dataset numbers_without_bad_ones(std::int64_t count) {
  return from_source({.size = count, .inputs = {{"", {2}}}, .targets = {{"", {}}}, .content = "partly bad"},
                     [](std::int64_t sample, const SampleArrays& into) {
                       if (sample % 7 == 3) throw Error(ErrorCode::invalid_file, "a sample is cut off");
                       into.inputs.elements<float>(0)[0] = static_cast<float>(sample);
                     })
      .skip_bad({.at_most = count});
}

inline std::int64_t small_length(const SampleArrays& sample) {
  return static_cast<std::int64_t>(sample.inputs.elements<float>(0)[0]) % 5;
}

inline bool keeps_two_of_three(const SampleArrays& sample) {
  return static_cast<int>(sample.inputs.elements<float>(0)[0]) % 3 != 0;
}

// Draws of one chain, in order: the same chain each time that it is made.
class PipelineDraws {
 public:
  explicit PipelineDraws(std::uint64_t pipeline) : random_(pipeline, Purpose::user, 0, 0) {}

  std::int64_t below(std::int64_t bound) {
    return static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(bound)));
  }

  Dataset dataset() {
    Dataset data = source();
    bool is_mixed = false;
    const std::int64_t stages = 1 + below(5);
    for (std::int64_t stage = 0; stage < stages; ++stage) data = next(data, is_mixed);
    return data;
  }

 private:
  Dataset source() {
    const std::int64_t samples = 20 + below(20);
    const std::int64_t kind = below(5);
    if (kind == 4) return numbers_without_bad_ones(samples);
    if (kind == 0) return numbers(samples);
    if (kind == 1) return numbers_of_classes(samples).split(0.3, {.by_label = true}).training;
    const Dataset sequences = number_sequences(samples);
    const PaddedOptions options{.value = static_cast<double>(below(3)),
                                .side = below(2) == 0 ? PaddingSide::begin : PaddingSide::end,
                                .truncation = below(2) == 0 ? Truncation::keep_begin : Truncation::keep_end,
                                .keep = below(2) == 0 ? LengthInput::mask : LengthInput::none};
    return below(3) == 0 ? sequences : sequences.padded(1 + below(6), options);
  }

  Dataset next(const Dataset& data, bool& is_mixed) {
    switch (below(12)) {
      case 0:
        is_mixed = true;
        return data.shuffle(1 + below(data.size() + 3));
      case 1:
        return data.take(data.size() / 2 + 4);
      case 2:
        return data.skip(below(4));
      case 3:
        // Splits and filters need fixed positions, and a filter plain inputs that count from 0.
        return is_mixed || data.size() < 8 ? data : data.split(0.25).training;
      case 4:
        return is_mixed || data.size() < 8 ? data : data.filter(keeps_two_of_three, "two of three");
      case 5:
        is_mixed = true;
        return data.size() > 200 ? data : data.repeat(2);
      case 6:
        return data.map(
            [](const SampleArrays& sample, Random& random) {
              sample.inputs.elements<float>(0)[0] += static_cast<float>(random.below(1000));
            },
            "noise");
      case 7:
        return data.size() < 8 ? data : data.window(1 + below(3), {.stride = 1 + below(2), .shift = 1 + below(2)});
      case 8:
        return Dataset::concatenate({data, data.take(5)});
      case 9:
        return Dataset::interleave({data.skip(2), data, data.take(7)});
      case 10:
        if (is_mixed) return data;
        is_mixed = true;
        return data.bucketed(1 + below(6), {.bounds = {1, 3}, .shuffle = below(2) == 0, .length_of = small_length});
      default:
        is_mixed = true;
        // Arrays of sequences have names, which no two may share, and their weights may stand in the last alone.
        return data.inputs().size() > 2 || data.has_sample_weights() ? data : Dataset::zip({data, data.shuffle(5)});
    }
  }

  Random random_;
};

// The chain of this number, made anew.
inline Dataset pipeline(std::uint64_t number) {
  return PipelineDraws(number).dataset();
}

}  // namespace holdfast
