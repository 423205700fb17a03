#pragma once

// One link in the chain behind a Dataset. Immutable after construction but for caches that lock themselves; load() is
// called from any thread.

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "data/position_set.h"
#include "holdfast/core/shape.h"
#include "holdfast/data/dataset.h"

namespace holdfast {

// All samples of a source, one behind the other; empty where it has them in another form.
struct SourceArrays {
  std::span<const float> features;
  std::span<const float> targets;
};

enum class StageKind { source, map, feature_map, shuffle, range, split, repeat };

class Stage {
 public:
  virtual ~Stage() = default;
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  const Shape& feature_shape() const { return feature_shape_; }
  const Shape& target_shape() const { return target_shape_; }
  std::int64_t size() const { return size_; }
  // Distance from the source, which is 0. It enters every draw, so that two stages of one kind do not draw alike.
  std::uint32_t number() const { return number_; }

  // As Dataset::load, which has checked position and destination.
  virtual void load(std::uint64_t seed, std::int64_t epoch, std::int64_t position, Sample destination) const = 0;
  // The first stage, where all others only choose and order its samples; null where they are changed on their way.
  virtual const Stage* source() const = 0;
  // Which sample of the first stage load() hands on, or makes another one of.
  virtual std::int64_t source_position(std::uint64_t seed, std::int64_t epoch, std::int64_t position) const = 0;
  // Where samples at these positions, in any epoch, may stand in the stage before; a source returns them unchanged.
  virtual PositionSet reach(const PositionSet& positions) const { return positions; }
  // The targets that load() gives.
  virtual void load_targets(std::uint64_t seed, std::int64_t epoch, std::int64_t position,
                            std::span<float> targets) const;

  virtual StageKind kind() const = 0;
  // Null for a source.
  virtual const Stage* previous() const { return nullptr; }
  // Of a feature map: what the application calls it; maps with one name make the same features.
  virtual std::string map_name() const { return {}; }
  // For a source: the same text for the same samples, wherever they were read from.
  virtual std::string content() const { return {}; }
  // Of a source. They stay where they are.
  virtual SourceArrays arrays() const { return {}; }
  // Appends what this stage and those before it do to an array.
  virtual void describe(nlohmann::ordered_json& stages) const = 0;

 protected:
  Stage(Shape feature_shape, Shape target_shape, std::int64_t size, std::uint32_t number)
      : feature_shape_(std::move(feature_shape)),
        target_shape_(std::move(target_shape)),
        size_(size),
        number_(number) {}

 private:
  Shape feature_shape_;
  Shape target_shape_;
  std::int64_t size_;
  std::uint32_t number_;
};

// A stage behind another one, with its shapes unless told otherwise.
class ChainedStage : public Stage {
 public:
  const Stage* previous() const override { return before_.get(); }

 protected:
  ChainedStage(std::shared_ptr<const Stage> before, std::int64_t size)
      : Stage(before->feature_shape(), before->target_shape(), size, before->number() + 1),
        before_(std::move(before)) {}
  ChainedStage(std::shared_ptr<const Stage> before, Shape feature_shape)
      : Stage(std::move(feature_shape), before->target_shape(), before->size(), before->number() + 1),
        before_(std::move(before)) {}

  const Stage& before() const { return *before_; }

 private:
  std::shared_ptr<const Stage> before_;
};

// The first stage, also where a map() follows it.
const Stage& origin_of(const Stage& last);
// Whether a stage of this kind is among them.
bool has_stage(const Stage& last, StageKind kind);

// The draws of a stage: `major` of Random is the epoch with the stage's number above it.
inline std::uint64_t draw_major(const Stage& stage, std::int64_t epoch) {
  return static_cast<std::uint64_t>(stage.number()) << 48 | static_cast<std::uint64_t>(epoch);
}

}  // namespace holdfast
