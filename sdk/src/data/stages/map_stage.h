#pragma once

// The user functions that Dataset::map() adds. They run as samples are loaded, on any thread. Loading throws
// Error{invalid_argument} for a function that draws although it may not (MapOptions).

#include <string>
#include <vector>

#include "data/stages/stage.h"

namespace holdfast {

// What all maps have in common. source() is null, since the samples may differ from epoch to epoch.
class MappedStage : public ChainedStage {
 public:
  void expect(std::uint64_t seed, std::int64_t epoch, std::int64_t position) const final {
    before().expect(seed, epoch, position);
  }
  const Stage* source() const final { return nullptr; }
  SampleOrigin origin(std::uint64_t seed, std::int64_t epoch, std::int64_t position) const final {
    return before().origin(seed, epoch, position);
  }
  bool is_same_in_all_epochs() const final { return !may_draw_ && before().is_same_in_all_epochs(); }

 protected:
  // `samples` is how many there are, or the layout of their inputs (ChainedStage).
  template <class Samples>
  MappedStage(std::shared_ptr<const Stage> before, Samples samples, std::string name, bool may_draw)
      : ChainedStage(std::move(before), std::move(samples)), name_(std::move(name)), may_draw_(may_draw) {}

  const std::string& name() const { return name_; }
  // Where this is false, load() refuses a function that draws: cache() would keep what epoch 0 drew.
  bool may_draw() const { return may_draw_; }

 private:
  std::string name_;
  bool may_draw_;  // MapOptions::draws
};

// Maps of inputs alone. Targets do not depend on the function, so it need not be called for them.
class MappedInputsStage : public MappedStage {
 public:
  void load_targets(std::uint64_t seed, std::int64_t epoch, std::int64_t position,
                    std::span<float> targets) const final {
    before().load_targets(seed, epoch, position, targets);
  }
  StageKind kind() const final { return StageKind::feature_map; }
  // Code cannot be compared, so the name stands for the function: maps of one name make the same features.
  std::string map_name() const final { return name(); }

 protected:
  using MappedStage::MappedStage;
};

// Changes samples in place. load_targets() is that of Stage, which calls the function: it may change the targets, too.
class MapStage final : public MappedStage {
 public:
  MapStage(const std::shared_ptr<const Stage>& before, Dataset::MapFunction function, std::string name, bool may_draw);

  void load(std::uint64_t seed, std::int64_t epoch, std::int64_t position, Sample destination) const override;
  StageKind kind() const override { return StageKind::map; }
  void describe(nlohmann::ordered_json& stages) const override;

 private:
  Dataset::MapFunction function_;
};

// Changes the arrays of samples in place, as MapStage.
class ArrayMapStage final : public MappedStage {
 public:
  ArrayMapStage(const std::shared_ptr<const Stage>& before, Dataset::ArrayMapFunction function, std::string name,
                bool may_draw);

  void load(std::uint64_t seed, std::int64_t epoch, std::int64_t position, Sample destination) const override;
  StageKind kind() const override { return StageKind::map; }
  void describe(nlohmann::ordered_json& stages) const override;

 private:
  Dataset::ArrayMapFunction function_;
};

// Computes new inputs, of other arrays.
class InputMapStage final : public MappedInputsStage {
 public:
  InputMapStage(std::shared_ptr<const Stage> before, std::vector<ArraySpec> inputs, Dataset::InputMapFunction function,
                std::string name, bool may_draw);

  void load(std::uint64_t seed, std::int64_t epoch, std::int64_t position, Sample destination) const override;
  void describe(nlohmann::ordered_json& stages) const override;

 private:
  Dataset::InputMapFunction function_;
};

// Computes new features of another shape.
class FeatureMapStage final : public MappedInputsStage {
 public:
  FeatureMapStage(std::shared_ptr<const Stage> before, Shape feature_shape, Dataset::FeatureFunction function,
                  std::string name, bool may_draw);

  void load(std::uint64_t seed, std::int64_t epoch, std::int64_t position, Sample destination) const override;
  void describe(nlohmann::ordered_json& stages) const override;

 private:
  Dataset::FeatureFunction function_;
};

}  // namespace holdfast
