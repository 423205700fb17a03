#pragma once

// The user functions that Dataset::map() adds. They run as samples are loaded, on any thread. Loading throws
// Error{invalid_argument} for a function that draws although it may not (MapOptions).

#include <string>
#include <vector>

#include "data/stages/stage.h"

namespace holdfast {

// Changes samples in place. source() is null, since the samples may differ from epoch to epoch. load_targets() is that
// of Stage, which calls the function: it may change the targets, too.
class MapStage : public ChainedStage {
 public:
  MapStage(std::shared_ptr<const Stage> before, Dataset::MapFunction function, std::string name, bool may_draw);

  void load(std::uint64_t seed, std::int64_t epoch, std::int64_t position, Sample destination) const override;
  void expect(std::uint64_t seed, std::int64_t epoch, std::int64_t position) const override {
    before().expect(seed, epoch, position);
  }
  const Stage* source() const override { return nullptr; }
  SampleOrigin origin(std::uint64_t seed, std::int64_t epoch, std::int64_t position) const override {
    return before().origin(seed, epoch, position);
  }
  bool is_same_in_all_epochs() const override { return !may_draw_ && before().is_same_in_all_epochs(); }
  StageKind kind() const override { return StageKind::map; }
  void describe(nlohmann::ordered_json& stages) const override;

 private:
  Dataset::MapFunction function_;
  std::string name_;
  // Where this is false, load() refuses a function that draws: cache() would keep what epoch 0 drew.
  bool may_draw_;  // MapOptions::draws
};

// Changes the arrays of samples in place. source() is null, as that of MapStage.
class ArrayMapStage : public ChainedStage {
 public:
  ArrayMapStage(std::shared_ptr<const Stage> before, Dataset::ArrayMapFunction function, std::string name,
                bool may_draw);

  void load(std::uint64_t seed, std::int64_t epoch, std::int64_t position, Sample destination) const override;
  void expect(std::uint64_t seed, std::int64_t epoch, std::int64_t position) const override {
    before().expect(seed, epoch, position);
  }
  const Stage* source() const override { return nullptr; }
  SampleOrigin origin(std::uint64_t seed, std::int64_t epoch, std::int64_t position) const override {
    return before().origin(seed, epoch, position);
  }
  bool is_same_in_all_epochs() const override { return !may_draw_ && before().is_same_in_all_epochs(); }
  StageKind kind() const override { return StageKind::map; }
  void describe(nlohmann::ordered_json& stages) const override;

 private:
  Dataset::ArrayMapFunction function_;
  std::string name_;
  bool may_draw_;  // MapOptions::draws
};

// Computes new inputs, of other arrays, and leaves the targets as they are.
class InputMapStage : public ChainedStage {
 public:
  InputMapStage(std::shared_ptr<const Stage> before, std::vector<ArraySpec> inputs, Dataset::InputMapFunction function,
                std::string name, bool may_draw);

  void load(std::uint64_t seed, std::int64_t epoch, std::int64_t position, Sample destination) const override;
  void expect(std::uint64_t seed, std::int64_t epoch, std::int64_t position) const override {
    before().expect(seed, epoch, position);
  }
  const Stage* source() const override { return nullptr; }
  SampleOrigin origin(std::uint64_t seed, std::int64_t epoch, std::int64_t position) const override {
    return before().origin(seed, epoch, position);
  }
  void load_targets(std::uint64_t seed, std::int64_t epoch, std::int64_t position,
                    std::span<float> targets) const override {
    before().load_targets(seed, epoch, position, targets);
  }
  bool is_same_in_all_epochs() const override { return !may_draw_ && before().is_same_in_all_epochs(); }
  StageKind kind() const override { return StageKind::feature_map; }
  // Code cannot be compared, so the name stands for the function: maps of one name make the same features.
  std::string map_name() const override { return name_; }
  void describe(nlohmann::ordered_json& stages) const override;

 private:
  Dataset::InputMapFunction function_;
  std::string name_;
  bool may_draw_;  // MapOptions::draws
};

// Computes new features of another shape, and leaves the targets as they are.
class FeatureMapStage : public ChainedStage {
 public:
  FeatureMapStage(std::shared_ptr<const Stage> before, Shape feature_shape, Dataset::FeatureFunction function,
                  std::string name, bool may_draw);

  void load(std::uint64_t seed, std::int64_t epoch, std::int64_t position, Sample destination) const override;
  void expect(std::uint64_t seed, std::int64_t epoch, std::int64_t position) const override {
    before().expect(seed, epoch, position);
  }
  const Stage* source() const override { return nullptr; }
  SampleOrigin origin(std::uint64_t seed, std::int64_t epoch, std::int64_t position) const override {
    return before().origin(seed, epoch, position);
  }
  // Targets do not depend on the function, so it need not be called.
  void load_targets(std::uint64_t seed, std::int64_t epoch, std::int64_t position,
                    std::span<float> targets) const override {
    before().load_targets(seed, epoch, position, targets);
  }
  bool is_same_in_all_epochs() const override { return !may_draw_ && before().is_same_in_all_epochs(); }
  StageKind kind() const override { return StageKind::feature_map; }
  std::string map_name() const override { return name_; }
  void describe(nlohmann::ordered_json& stages) const override;

 private:
  Dataset::FeatureFunction function_;
  std::string name_;
  bool may_draw_;  // MapOptions::draws
};

}  // namespace holdfast
