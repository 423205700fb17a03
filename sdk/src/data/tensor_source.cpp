// A source of two tensors in memory. Digests of their content stand in the description, so that a run
// which resumes with other data is refused.

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "data/stage.h"
#include "holdfast/base/digest.h"
#include "holdfast/base/error.h"

namespace holdfast {
namespace {

class TensorSource : public Stage {
 public:
  TensorSource(Tensor features, Tensor targets)
      : Stage(features.shape().without_batch(), targets.shape().without_batch(), features.shape()[0], 0),
        features_(std::move(features)),
        targets_(std::move(targets)),
        feature_digest_(digest(std::as_bytes(std::as_const(features_).values()))),
        target_digest_(digest(std::as_bytes(std::as_const(targets_).values()))) {}

  void load(std::uint64_t, std::int64_t, std::int64_t position, Sample destination) const override {
    std::ranges::copy(features_.sample(position), destination.features.begin());
    std::ranges::copy(targets_.sample(position), destination.targets.begin());
  }

  const Stage* source() const override { return this; }
  std::int64_t source_position(std::uint64_t, std::int64_t, std::int64_t position) const override { return position; }

  void load_targets(std::uint64_t, std::int64_t, std::int64_t position, std::span<float> targets) const override {
    std::ranges::copy(targets_.sample(position), targets.begin());
  }
  StageKind kind() const override { return StageKind::source; }
  std::string content() const override {
    return "tensors " + features_.shape().to_string() + " " + feature_digest_.hex() + " " +
           targets_.shape().to_string() + " " + target_digest_.hex();
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

}  // namespace

Dataset from_tensors(Tensor features, Tensor targets) {
  const bool have_samples = features.shape().rank() > 0 && targets.shape().rank() > 0;
  if (!have_samples || features.shape()[0] != targets.shape()[0]) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format(
            "features and targets need the same first axis, one entry per sample, but their shapes are {} and {}",
            features.shape().to_string(), targets.shape().to_string()));
  }
  return Dataset(std::make_shared<TensorSource>(std::move(features), std::move(targets)));
}

}  // namespace holdfast
