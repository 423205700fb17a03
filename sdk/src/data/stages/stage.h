#pragma once

// One link of the chain of stages that a Dataset holds. A stage is immutable, except for caches that
// lock themselves. Any thread may call load(), several at once. See docs/decisions/stages.md.

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "data/stages/position_set.h"
#include "holdfast/core/row_layout.h"
#include "holdfast/core/shape.h"
#include "holdfast/data/dataset.h"

namespace holdfast {

// All samples of a source as two arrays of rows (RowLayout), one sample after the other; empty if the source
// stores them in another form.
struct SourceArrays {
  std::span<const float> features;
  std::span<const float> targets;
};

// What a stage does, for code that must look through the chain.
enum class StageKind {
  source,
  map,
  feature_map,
  mixup,
  cutmix,
  shuffle,
  bucketed,
  padded,
  range,
  split,
  filter,
  repeat,
  window,
  concatenate,
  interleave,
  zip,
  cache,
  class_weights,
  skip_bad,
  padded_batches,
};

// The name of the array of weights, which files and descriptions hold.
inline constexpr const char* kSampleWeightName = "sample_weight";

// What samples consist of.
struct SampleLayouts {
  RowLayout inputs;
  RowLayout targets;
  // The last array of the targets is the weight of the sample, or one weight for each position.
  bool has_weights = false;
  // Whether that array has the weights of each target side by side, which no axis of positions orders.
  bool has_weights_of_targets = false;

  bool are_plain() const { return inputs.is_plain() && targets.is_plain() && !has_weights; }
};

// One f32 array for features and one for targets, without names, as most data sets have.
inline SampleLayouts plain_layouts(Shape features, Shape targets) {
  return {.inputs = RowLayout({{.name = {}, .shape = std::move(features)}}),
          .targets = RowLayout({{.name = {}, .shape = std::move(targets)}})};
}

class Stage;

// Where a sample comes from: a first stage, and the position in it.
struct SampleOrigin {
  const Stage* stage = nullptr;
  std::int64_t position = 0;
};

// The base class of sources and of the stages that follow them.
class Stage {
 public:
  virtual ~Stage() = default;
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  const SampleLayouts& layouts() const { return layouts_; }
  // The shape of the first input and of the first target.
  const Shape& feature_shape() const { return layouts_.inputs.arrays()[0].shape; }
  const Shape& target_shape() const { return layouts_.targets.arrays()[0].shape; }
  // The words of a sample's rows.
  std::size_t feature_words() const { return layouts_.inputs.words(); }
  std::size_t target_words() const { return layouts_.targets.words(); }
  std::int64_t size() const { return size_; }
  // The distance from the source, which has number 0. It enters every draw, so two stages of one kind
  // draw differently.
  std::uint32_t number() const { return number_; }

  // As Dataset::load(), which has checked the position and the destination: rows of feature_words() and
  // target_words().
  virtual void load(std::uint64_t seed, std::int64_t epoch, std::int64_t position, Sample destination) const = 0;
  // As load() for each position from `first` on: rows that follow each other, as many as there is room for. Stages that
  // read neighbours from a file read several at once.
  virtual void load_run(std::uint64_t seed, std::int64_t epoch, std::int64_t first, Sample rows) const;
  // How many samples load_run() should get at once; 0: it would only call load(). More take no less time.
  virtual std::int64_t samples_of_a_run() const { return 0; }
  // Whether expect() is of use: this stage, or one before it, reads samples from a file.
  virtual bool reads_files() const;
  // A hint that this sample will be loaded soon, for stages that read files. It cannot fail and has no influence on
  // what load() writes.
  virtual void expect(std::uint64_t /*seed*/, std::int64_t /*epoch*/, std::int64_t /*position*/) const {}
  // The first stage if all later ones only select and order its samples; null if one of them changes
  // samples or joins those of several data sets.
  virtual const Stage* source() const = 0;
  // The first stage of the sample that load() returns or changes, and the position there. Where several data sets are
  // joined, it is a stage of one of them only if that stage has a name for its samples, and the joining stage
  // otherwise.
  virtual SampleOrigin origin(std::uint64_t seed, std::int64_t epoch, std::int64_t position) const = 0;
  std::int64_t source_position(std::uint64_t seed, std::int64_t epoch, std::int64_t position) const {
    return origin(seed, epoch, position).position;
  }
  // What an origin() calls the sample besides its number, for messages: "\"houses.csv\", line 17"; empty: nothing.
  virtual std::string place(std::int64_t /*position*/) const { return {}; }
  // The stages before this one: none of a source, and several if it joins data sets.
  virtual std::vector<const Stage*> parents() const { return {}; }
  // Whether load() writes the same bits for each seed and epoch.
  virtual bool is_same_in_all_epochs() const;
  // The positions in that parent to which samples at `positions`, in any epoch, may lead.
  virtual PositionSet reach(const PositionSet& positions, std::size_t /*parent*/) const { return positions; }
  // Writes the same targets as load(). Stages override it if they can avoid loading the features.
  virtual void load_targets(std::uint64_t seed, std::int64_t epoch, std::int64_t position,
                            std::span<float> targets) const;

  virtual StageKind kind() const = 0;
  // The name that the application gave a feature map. Maps with one name make the same features.
  virtual std::string map_name() const { return {}; }
  // The text of a source, which is equal for equal samples, wherever they were read from.
  virtual std::string content() const { return {}; }
  // The arrays of a source. They never move.
  virtual SourceArrays arrays() const { return {}; }
  // What skip_bad() left out.
  virtual const SkippedSamples* skipped() const { return nullptr; }
  // Appends descriptions of all stages before and of this one to the JSON array `stages`.
  virtual void describe(nlohmann::ordered_json& stages) const = 0;

 protected:
  Stage(SampleLayouts layouts, std::int64_t size, std::uint32_t number)
      : layouts_(std::move(layouts)), size_(size), number_(number) {}

 private:
  SampleLayouts layouts_;
  std::int64_t size_;
  std::uint32_t number_;
};

// A source: the first stage of a chain. Its samples depend on their position alone.
class SourceStage : public Stage {
 public:
  const Stage* source() const final { return this; }
  SampleOrigin origin(std::uint64_t, std::int64_t, std::int64_t position) const final { return {this, position}; }
  StageKind kind() const final { return StageKind::source; }

 protected:
  SourceStage(SampleLayouts layouts, std::int64_t size) : Stage(std::move(layouts), size, 0) {}
};

// A stage that follows another one and has its arrays, unless a constructor says otherwise.
class ChainedStage : public Stage {
 public:
  std::vector<const Stage*> parents() const override { return {before_.get()}; }

 protected:
  ChainedStage(std::shared_ptr<const Stage> before, std::int64_t size)
      : Stage(before->layouts(), size, before->number() + 1), before_(std::move(before)) {}
  ChainedStage(std::shared_ptr<const Stage> before, SampleLayouts layouts, std::int64_t size)
      : Stage(std::move(layouts), size, before->number() + 1), before_(std::move(before)) {}
  ChainedStage(std::shared_ptr<const Stage> before, RowLayout inputs)
      : Stage({.inputs = std::move(inputs),
               .targets = before->layouts().targets,
               .has_weights = before->layouts().has_weights,
               .has_weights_of_targets = before->layouts().has_weights_of_targets},
              before->size(), before->number() + 1),
        before_(std::move(before)) {}

  const Stage& before() const { return *before_; }
  const std::shared_ptr<const Stage>& shared_before() const { return before_; }

 private:
  std::shared_ptr<const Stage> before_;
};

// The layouts of samples that have a weight besides: a last target, unless they have weights already.
SampleLayouts weighted_layouts(const SampleLayouts& before);

// Whether `last` or a stage before it is of this kind.
bool has_stage(const Stage& last, StageKind kind);
// Whether a stage of this kind brings samples to other positions in each epoch.
inline bool mixes_samples(StageKind kind) {
  return kind == StageKind::shuffle || kind == StageKind::bucketed;
}
// The function that made such a stage at `last` or before it, for messages: "shuffle()". Null if there is none.
const char* mixing_stage(const Stage& last);

// A sample of `last` as a user can look it up, whatever order it has in this epoch: "sample 15 (\"houses.csv\", line
// 17)".
std::string name_of_sample(const Stage& last, std::uint64_t seed, std::int64_t epoch, std::int64_t position);

// What all skip_bad() stages at these stages or before them left out. A stage that several of them share counts once.
SkippedSamples skipped_by(std::span<const Stage* const> last);

// [{"name": "ids", "shape": [128], "dtype": "i32"}, ...]
nlohmann::ordered_json json_of(const RowLayout& layout);

// Everything that the bits of the samples of a stage depend on, as JSON: for files that keep what was found in them.
std::string text_of_samples(const Stage& stage);

// Models compute with 32-bit integers. Throws Error{invalid_argument} that names the array, the element and the sample
// of an i64 that does not fit.
void check_integers(const SampleLayouts& layouts, Sample sample, std::int64_t position);

// The counter `major` of Random for the draws of a stage: the epoch, with the number of the stage above
// it.
// Epochs are counted below this, since draw_major() has the number of the stage above.
inline constexpr std::int64_t kMostEpochs = std::int64_t{1} << 48;
inline std::uint64_t draw_major(const Stage& stage, std::int64_t epoch) {
  return static_cast<std::uint64_t>(stage.number()) << 48 | static_cast<std::uint64_t>(epoch);
}

// The samples of `stage` in the batches of `data`, or in batches of `together` times as many samples, with what
// prefetch() and keep_on_device() were given.
Dataset same_batches(const Dataset& data, std::shared_ptr<const Stage> stage, std::int64_t together = 1);

}  // namespace holdfast
