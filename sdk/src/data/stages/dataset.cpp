// A Dataset is a chain of immutable stages plus what batch(), prefetch() and keep_on_device() were
// given. Each function returns a new handle, and it refuses what cannot be meant where the user wrote
// it, rather than in fit(). See docs/decisions/stages.md.

#include "holdfast/data/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "data/stages/joined_stage.h"
#include "data/stages/map_stage.h"
#include "data/stages/mixup_stage.h"
#include "data/stages/range_stage.h"
#include "data/stages/repeat_stage.h"
#include "data/stages/shuffle_stage.h"
#include "data/stages/split_positions.h"
#include "data/stages/split_stage.h"
#include "data/stages/stage.h"
#include "data/stages/window_stage.h"
#include "holdfast/base/error.h"
#include "holdfast/data/picture_change.h"

namespace holdfast {
namespace {

void check_count(const std::string& stage, std::int64_t count, std::int64_t least) {
  if (count >= least) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}() needs a number of at least {}, not {}", stage, least, count));
}

// The arrays of a sample, for messages.
std::string text_of(std::span<const ArraySpec> arrays) {
  // One array of f32 is what most data sets have. There the type would only make the message longer.
  if (arrays.size() == 1 && arrays[0].dtype == DType::f32) return arrays[0].shape.to_string();
  std::vector<std::string> texts;
  for (const ArraySpec& array : arrays) texts.push_back(array.to_string());
  return fmt::format("{}", fmt::join(texts, ", "));
}

const Shape& only_shape(std::span<const ArraySpec> arrays, const char* what, const char* instead) {
  if (arrays.size() == 1) return arrays[0].shape;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("the samples have {} {}, so there is not one shape; ask {}", arrays.size(), what, instead));
}

}  // namespace

Dataset::Dataset(std::shared_ptr<const Stage> stage) : stage_(std::move(stage)) {
  HOLDFAST_ASSERT(stage_ != nullptr);
}

const Shape& Dataset::feature_shape() const {
  return only_shape(inputs(), "inputs", "inputs()");
}
const Shape& Dataset::target_shape() const {
  return only_shape(targets(), "targets", "targets()");
}
std::span<const ArraySpec> Dataset::inputs() const {
  return stage_->layouts().inputs.arrays();
}
std::span<const ArraySpec> Dataset::targets() const {
  const std::span<const ArraySpec> arrays = stage_->layouts().targets.arrays();
  // Weights travel as the last target. For the user they are not one.
  return arrays.first(arrays.size() - (has_sample_weights() ? 1 : 0));
}
bool Dataset::has_sample_weights() const {
  return stage_->layouts().has_weights;
}
const RowLayout& Dataset::input_layout() const {
  return stage_->layouts().inputs;
}
const RowLayout& Dataset::target_layout() const {
  return stage_->layouts().targets;
}
std::int64_t Dataset::size() const {
  return stage_->size();
}

// Stages work on samples, but after batch() a user would expect them to see batches.
void Dataset::check_is_open(const std::string& stage) const {
  if (batch_size_ == 0 && !is_prefetched_ && !is_kept_on_device_) return;
  const std::string before = batch_size_ != 0 ? "batch()" : is_prefetched_ ? "prefetch()" : "keep_on_device()";
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}() stands after {}; stages work on single samples, so batch(), prefetch() and "
                          "keep_on_device() come last",
                          stage, before));
}

Dataset Dataset::map(MapFunction function, std::string name, MapOptions options) const {
  check_is_open("map");
  return Dataset(std::make_shared<MapStage>(stage_, std::move(function), std::move(name), options.draws));
}

Dataset Dataset::map(Shape new_feature_shape, FeatureFunction function, std::string name, MapOptions options) const {
  check_is_open("map");
  return Dataset(std::make_shared<FeatureMapStage>(stage_, std::move(new_feature_shape), std::move(function),
                                                   std::move(name), options.draws));
}

Dataset Dataset::map(ArrayMapFunction function, std::string name, MapOptions options) const {
  check_is_open("map");
  return Dataset(std::make_shared<ArrayMapStage>(stage_, std::move(function), std::move(name), options.draws));
}

Dataset Dataset::map(std::vector<ArraySpec> new_inputs, InputMapFunction function, std::string name,
                     MapOptions options) const {
  check_is_open("map");
  return Dataset(std::make_shared<InputMapStage>(stage_, std::move(new_inputs), std::move(function), std::move(name),
                                                 options.draws));
}

// An InputMapStage like that of a function, since a change is a function that names itself. output() throws for samples
// that it cannot change, so the mistake shows here and not at the first batch.
Dataset Dataset::map(const PictureChange& change) const {
  check_is_open("map");
  if (inputs().size() != 1) {
    throw Error(ErrorCode::invalid_argument, fmt::format("\"{}\" changes samples of one picture, and these have {}",
                                                         change.name, text_of(inputs())));
  }
  return Dataset(std::make_shared<InputMapStage>(stage_, std::vector{change.output(inputs()[0])}, change.apply,
                                                 change.name, change.draws));
}

Dataset Dataset::mixup(float alpha) const {
  check_is_open("mixup");
  return Dataset(std::make_shared<MixupStage>(stage_, alpha));
}

Dataset Dataset::cutmix(float alpha) const {
  check_is_open("cutmix");
  return Dataset(std::make_shared<CutmixStage>(stage_, alpha));
}

Dataset Dataset::shuffle() const {
  // A window of all samples is a full shuffle. An empty data set still needs a window of at least one.
  return shuffle(std::max<std::int64_t>(1, size()));
}

Dataset Dataset::shuffle(std::int64_t window) const {
  check_is_open("shuffle");
  return Dataset(std::make_shared<ShuffleStage>(stage_, window));
}

Dataset Dataset::take(std::int64_t count) const {
  check_is_open("take");
  check_count("take", count, 0);
  // More than there are means all, as in tf.data.
  return Dataset(std::make_shared<RangeStage>(stage_, 0, std::min(count, size())));
}

// More than there are leave no sample, as take(0) does. A data set without samples is allowed.
Dataset Dataset::skip(std::int64_t count) const {
  check_is_open("skip");
  check_count("skip", count, 0);
  const std::int64_t first = std::min(count, size());
  return Dataset(std::make_shared<RangeStage>(stage_, first, size() - first));
}

Dataset Dataset::window(std::int64_t count, WindowOptions options) const {
  check_is_open("window");
  return Dataset(std::make_shared<WindowStage>(stage_, count, options));
}

// Joined data sets must be open too: what batch() gave to a part would be lost.
std::vector<std::shared_ptr<const Stage>> Dataset::stages_of(const std::vector<Dataset>& parts,
                                                             const std::string& stage) {
  std::vector<std::shared_ptr<const Stage>> stages;
  for (const Dataset& part : parts) {
    part.check_is_open(stage);
    stages.push_back(part.stage_);
  }
  return stages;
}

Dataset Dataset::concatenate(const std::vector<Dataset>& parts) {
  return Dataset(std::make_shared<ConcatenateStage>(stages_of(parts, "concatenate")));
}

Dataset Dataset::interleave(const std::vector<Dataset>& parts) {
  return Dataset(std::make_shared<InterleaveStage>(stages_of(parts, "interleave")));
}

Dataset Dataset::zip(const std::vector<Dataset>& parts) {
  return Dataset(std::make_shared<ZipStage>(stages_of(parts, "zip")));
}

DatasetSplit Dataset::split_off_fraction(double fraction, const SplitOptions& options) const {
  check_is_open("split");
  return split_off(samples_of_fraction(fraction, size(), "sample"), options);
}

DatasetSplit Dataset::split_off(std::int64_t count, const SplitOptions& options) const {
  check_is_open("split");
  return holdfast::split(stage_, count, options);
}

Dataset Dataset::repeat(std::int64_t count) const {
  check_is_open("repeat");
  return Dataset(std::make_shared<RepeatStage>(stage_, count));
}

Dataset Dataset::prefetch(int depth, PrefetchOptions options) const {
  check_count("prefetch", depth, 0);
  // PrefetchOptions::automatic is 0. With a depth of 0 nothing is loaded ahead, so threads would have no effect.
  if (options.threads < 0 || (depth == 0 && options.threads != 1)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("prefetch() of {} batches by {} threads: use one thread or more, or "
                            "PrefetchOptions::automatic, and just one with a depth of 0, which loads nothing ahead",
                            depth, options.threads));
  }
  // Only here: check_is_open() is for stages, and prefetch() may stand before or after batch().
  if (is_prefetched_) throw Error(ErrorCode::invalid_argument, "prefetch() is given twice");
  Dataset result = *this;
  result.is_prefetched_ = true;
  result.prefetch_depth_ = depth;
  result.prefetch_threads_ = options.threads;
  return result;
}

Dataset Dataset::keep_on_device() const {
  if (is_kept_on_device_) throw Error(ErrorCode::invalid_argument, "keep_on_device() is given twice");
  // The device keeps what the source has. A map() runs on the host, after that copy was made.
  if (stage_->source() == nullptr) {
    throw Error(
        ErrorCode::invalid_argument,
        "keep_on_device() stands after map(), which makes other samples in each epoch, or after a stage that joins or "
        "weighs samples; leave out one of the two");
  }
  Dataset result = *this;
  result.is_kept_on_device_ = true;
  return result;
}

std::int64_t Dataset::batches() const {
  if (batch_size_ == 0) return 0;
  // The remainder is one smaller batch. Its gradient is divided by its own number of samples.
  const bool has_remainder = size() % batch_size_ != 0;
  return size() / batch_size_ + (has_remainder && !drop_remainder_ ? 1 : 0);
}

void Dataset::load(std::uint64_t seed, std::int64_t epoch, std::int64_t position, Sample destination) const {
  if (epoch < 0 || position < 0 || position >= size()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("there is no sample {} in epoch {}; epochs count from 0 and have {} samples", position,
                            epoch, size()));
  }
  // Checked once here, for the whole chain: stages copy rows without a check.
  if (destination.features.size() != stage_->feature_words() || destination.targets.size() != stage_->target_words()) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("a sample with features {} and targets {} does not fit into {} and {} floats", text_of(inputs()),
                    text_of(targets()), destination.features.size(), destination.targets.size()));
  }
  stage_->load(seed, epoch, position, destination);
}

// Prefetching and keep_on_device() are left out, since no bit depends on them: a run may resume with
// other ones.
std::string Dataset::description() const {
  nlohmann::ordered_json stages = nlohmann::ordered_json::array();
  stage_->describe(stages);
  nlohmann::ordered_json description = {{"size", size()}};
  // Data sets of one f32 array and one target have a shorter text, which is in the savepoints of their runs.
  if (stage_->layouts().are_plain()) {
    description["features"] = feature_shape().extents();
    description["targets"] = target_shape().extents();
  } else {
    description["inputs"] = json_of(input_layout());
    description["targets"] = json_of(target_layout());
    if (has_sample_weights()) description["sample_weights"] = true;
  }
  description["stages"] = std::move(stages);
  // Both members decide which samples a step has, so a resume compares them.
  description["batch"] = batch_size_;
  description["drop_remainder"] = drop_remainder_;
  // Names of maps may hold any bytes, and dump() would throw for those that are not UTF-8.
  return description.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

Dataset same_batches(const Dataset& data, std::shared_ptr<const Stage> stage, std::int64_t together) {
  std::int64_t samples = 0;
  if (__builtin_mul_overflow(data.batch_size(), together, &samples)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} batches of {} samples together have more samples than 63 bits can count", together,
                            data.batch_size()));
  }
  // Through the public functions, so what they refuse is refused here too.
  Dataset result = Dataset(std::move(stage)).batch(samples, {.drop_remainder = data.drops_remainder()});
  result = result.prefetch(data.prefetch_depth(), {.threads = data.prefetch_threads()});
  return data.is_kept_on_device() ? result.keep_on_device() : result;
}

}  // namespace holdfast
