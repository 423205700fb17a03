// A source of tensors in memory. Digests of their content stand in the description, so that a run which resumes with
// other data is refused. See docs/decisions/stages.md.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/tensor_rows.h"
#include "data/sources/arrays_source.h"
#include "data/sources/sample_weights.h"
#include "holdfast/base/digest.h"
#include "holdfast/base/error.h"
#include "holdfast/base/shown_text.h"

namespace holdfast {
namespace {

ArraySpec spec_of(const std::string& name, const Tensor& tensor) {
  return {.name = name, .shape = tensor.shape().without_batch(), .dtype = tensor.dtype()};
}

// One f32 tensor of features and one of targets.
// The plain source. Its tensors are rows as devices read them, so arrays() lends them to be pinned or kept on a device.
// Its description, shorter than that of several arrays, stands in savepoints, so it must stay as it is.
class TensorSource : public SourceStage {
 public:
  TensorSource(Tensor features, Tensor targets)
      : SourceStage(plain_layouts(features.shape().without_batch(), targets.shape().without_batch()),
                    features.shape()[0]),
        features_(std::move(features)),
        targets_(std::move(targets)),
        feature_digest_(digest(std::as_bytes(std::as_const(features_).values()))),
        target_digest_(digest(std::as_bytes(std::as_const(targets_).values()))) {}

  void load(std::uint64_t, std::int64_t, std::int64_t position, Sample destination) const override {
    std::ranges::copy(features_.sample(position), destination.features.begin());
    std::ranges::copy(targets_.sample(position), destination.targets.begin());
  }

  void load_targets(std::uint64_t, std::int64_t, std::int64_t position, std::span<float> targets) const override {
    std::ranges::copy(targets_.sample(position), targets.begin());
  }
  std::string content() const override {
    return fmt::format("tensors {} {} {} {}", features_.shape().to_string(), feature_digest_.hex(),
                       targets_.shape().to_string(), target_digest_.hex());
  }

  SourceArrays arrays() const override { return {features_.values(), targets_.values()}; }

  void describe(nlohmann::ordered_json& stages) const override {
    stages.push_back({{"kind", "tensors"},
                      {"features", features_.shape().extents()},
                      {"targets", targets_.shape().extents()},
                      {"feature_digest", feature_digest_.hex()},
                      {"target_digest", target_digest_.hex()}});
  }

 private:
  Tensor features_;  // [size, feature shape]
  Tensor targets_;   // [size, target shape]
  Digest feature_digest_;
  Digest target_digest_;
};

std::vector<std::string> digests_of(const std::vector<Tensor>& inputs, const std::vector<Tensor>& targets) {
  std::vector<std::string> digests;
  for (const std::vector<Tensor>* tensors : {&inputs, &targets}) {
    for (const Tensor& tensor : *tensors) digests.push_back(digest(tensor.bytes()).hex());
  }
  return digests;
}

// Several tensors, of any types. Rows are made as samples are loaded.
class TensorArraysSource : public ArraysSource {
 public:
  // The digests are taken once: the tensors never change afterwards, so they stay true.
  TensorArraysSource(SampleLayouts layouts, std::int64_t size, std::vector<Tensor> inputs, std::vector<Tensor> targets)
      : ArraysSource(std::move(layouts), size, digests_of(inputs, targets)),
        inputs_(std::move(inputs)),
        targets_(std::move(targets)) {}

 private:
  void read_inputs(std::int64_t position, std::span<float> row) const override {
    read_row(layouts().inputs, input_pointers_, position, row);
  }
  void read_targets(std::int64_t position, std::span<float> row) const override {
    read_row(layouts().targets, target_pointers_, position, row);
  }

  // read_row() takes pointers, made once here. They stay valid, because tensors and stages do not move after this.
  static std::vector<const Tensor*> pointers_to(const std::vector<Tensor>& tensors) {
    std::vector<const Tensor*> pointers;
    for (const Tensor& tensor : tensors) pointers.push_back(&tensor);
    return pointers;
  }

  const std::vector<Tensor> inputs_;   // [size, shape] each
  const std::vector<Tensor> targets_;  // then the weights, if there are any
  const std::vector<const Tensor*> input_pointers_ = pointers_to(inputs_);
  const std::vector<const Tensor*> target_pointers_ = pointers_to(targets_);
};

// Checks one tensor of a data set against the number of samples that the first one has.
// Names the array by role and name, since a data set may have inputs and targets of one name.
void check_samples(const NamedTensor& given, const char* role, std::int64_t samples) {
  const Shape& shape = given.tensor.shape();
  if (shape.rank() > 0 && shape[0] == samples) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} {} has the shape {}, but the first input has {} samples; the first axis of all "
                          "tensors counts samples",
                          role, quoted_text(given.name), shape.to_string(), samples));
}

}  // namespace

void check_sample_weights(const Tensor& weights) {
  if (weights.dtype() != DType::f32) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("sample weights are of {}; pass them as f32", name(weights.dtype())));
  }
  // Nothing could be divided by the weights of a sample that has none.
  if (weights.shape().rank() > 0 && weights.shape().without_batch().element_count() == 0) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("sample weights have the shape {}, which has no number for a sample; give each sample one "
                            "weight, or one for each position of its target's first axes",
                            weights.shape().to_string()));
  }
  for (std::size_t index = 0; index < weights.values().size(); ++index) {
    const float weight = weights.values()[index];
    // The sum of the weights divides the gradient. A NaN or a negative weight would spoil a whole batch.
    if (weight >= 0 && std::isfinite(weight)) continue;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("sample weight {} is {}; weights are numbers from 0 on", index, weight));
  }
}

namespace {

Dataset from_weighted(std::vector<NamedTensor> inputs, std::vector<NamedTensor> targets,
                      std::optional<Tensor> sample_weights, bool are_of_targets) {
  if (inputs.empty() || inputs[0].tensor.shape().rank() == 0) {
    throw Error(ErrorCode::invalid_argument, "from_tensors() needs at least one input, with one entry per sample");
  }
  if (sample_weights) {
    check_sample_weights(*sample_weights);
    // Weights are the last target, so they take the way of every other target to the device.
    targets.push_back({.name = kSampleWeightName, .tensor = std::move(*sample_weights)});
  }
  const std::int64_t samples = inputs[0].tensor.shape()[0];
  // Tensors are moved and not copied; the specs are made before that.
  const auto take = [&](std::vector<NamedTensor>& named, const char* role, std::vector<Tensor>& tensors) {
    std::vector<ArraySpec> specs;
    for (NamedTensor& each : named) {
      check_samples(each, role, samples);
      specs.push_back(spec_of(each.name, each.tensor));
      tensors.push_back(std::move(each.tensor));
    }
    return RowLayout(std::move(specs));
  };
  std::vector<Tensor> input_tensors;
  std::vector<Tensor> target_tensors;
  RowLayout input_layout = take(inputs, "input", input_tensors);
  RowLayout target_layout = take(targets, "target", target_tensors);
  // `sample_weights` still has a value, although its tensor was moved out of it.
  return Dataset(std::make_shared<TensorArraysSource>(SampleLayouts{.inputs = std::move(input_layout),
                                                                    .targets = std::move(target_layout),
                                                                    .has_weights = sample_weights.has_value(),
                                                                    .has_weights_of_targets = are_of_targets},
                                                      samples, std::move(input_tensors), std::move(target_tensors)));
}

// A sample has one weight, or one for each position, which are the first axes of its target. Without this, the weights
// of one target could pass for those of another: side by side, only their sum counts.
void check_width(const NamedTensor& target, const Tensor& weights) {
  const Shape of_target = target.tensor.shape().without_batch();
  const std::int64_t width = weights.shape().without_batch().element_count();
  std::int64_t positions = 1;
  bool is_possible = width == 1;
  for (const std::int64_t extent : of_target.extents()) {
    positions *= extent;
    is_possible = is_possible || width == positions;
  }
  if (is_possible) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("the weights of target {} have the shape {}, and a sample of it the shape {}; a sample "
                          "takes one weight, or one for each position of the target's first axes",
                          quoted_text(target.name), weights.shape().to_string(), of_target.to_string()));
}

// The weights of each target, side by side: [samples, all weights of a sample].
Tensor joined_weights(const std::vector<NamedTensor>& targets, const std::vector<NamedTensor>& weights,
                      std::int64_t samples) {
  std::vector<const Tensor*> of_targets;
  std::int64_t width = 0;
  if (targets.empty()) throw Error(ErrorCode::invalid_argument, "there are weights of targets, but no targets");
  for (const NamedTensor& target : targets) {
    // By name and not by position: weights of the wrong target would train on without a message.
    const auto found = std::ranges::find(weights, target.name, &NamedTensor::name);
    if (found == weights.end() || weights.size() != targets.size()) {
      const auto names = [](const std::vector<NamedTensor>& tensors) {
        std::vector<std::string> quoted;
        for (const NamedTensor& tensor : tensors) quoted.push_back(quoted_text(tensor.name));
        return fmt::format("{}", fmt::join(quoted, ", "));
      };
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("there are weights for {}, and the targets are {}; give weights to each target by its "
                              "name, 1 where all samples count alike",
                              names(weights), names(targets)));
    }
    check_samples(*found, "weights of target", samples);
    check_sample_weights(found->tensor);
    check_width(target, found->tensor);
    of_targets.push_back(&found->tensor);
    width += found->tensor.shape().without_batch().element_count();
  }
  std::vector<float> joined;
  joined.reserve(static_cast<std::size_t>(samples * width));
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    for (const Tensor* const tensor : of_targets) {
      const std::span<const float> row = tensor->sample(sample);
      joined.insert(joined.end(), row.begin(), row.end());
    }
  }
  return Tensor({samples, width}, std::move(joined));
}

}  // namespace

Dataset from_tensors(std::vector<NamedTensor> inputs, std::vector<NamedTensor> targets,
                     std::vector<NamedTensor> target_weights) {
  // The other form refuses this in a sentence of its own. What follows needs a first input.
  if (inputs.empty() || inputs[0].tensor.shape().rank() == 0)
    return from_tensors(std::move(inputs), std::move(targets));
  Tensor weights = joined_weights(targets, target_weights, inputs[0].tensor.shape()[0]);
  const bool are_of_targets = targets.size() > 1;
  // The weights of a single target are those of its samples, in the shape of its positions.
  if (!are_of_targets) weights = std::move(target_weights[0].tensor);
  return from_weighted(std::move(inputs), std::move(targets), std::move(weights), are_of_targets);
}

Dataset from_tensors(std::vector<NamedTensor> inputs, std::vector<NamedTensor> targets,
                     std::optional<Tensor> sample_weights) {
  return from_weighted(std::move(inputs), std::move(targets), std::move(sample_weights), false);
}

Dataset from_tensors(Tensor features, Tensor targets) {
  const bool have_samples = features.shape().rank() > 0 && targets.shape().rank() > 0;
  if (!have_samples || features.shape()[0] != targets.shape()[0]) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format(
            "features and targets need the same first axis, one entry per sample, but their shapes are {} and {}",
            features.shape().to_string(), targets.shape().to_string()));
  }
  // Two tensors of f32 keep the plain source, whose arrays can be pinned as they are.
  if (features.dtype() != DType::f32 || targets.dtype() != DType::f32) {
    std::vector<NamedTensor> inputs;
    std::vector<NamedTensor> outputs;
    inputs.push_back({.name = {}, .tensor = std::move(features)});
    outputs.push_back({.name = {}, .tensor = std::move(targets)});
    return from_tensors(std::move(inputs), std::move(outputs));
  }
  return Dataset(std::make_shared<TensorSource>(std::move(features), std::move(targets)));
}

}  // namespace holdfast
