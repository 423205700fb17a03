#pragma once

// Samples for training, and the stages that they pass through on their way. Every stage is random access: which sample
// stands at which position of an epoch, and what map() functions drew for it, is a pure function of (seed, epoch,
// position). So a run is resumed by going on at a position, and each replica loads the samples of its own shards and no
// others.
//
//   Dataset train = read_idx(images, labels).shuffle().map(shift_a_little, "shift").batch(256).prefetch(2);
//
// A Dataset is a handle on immutable stages: cheap to copy, safe to use from several threads. It does not read ahead by
// itself and holds no place in the data.

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "holdfast/core/random.h"
#include "holdfast/core/shape.h"
#include "holdfast/core/tensor.h"

namespace holdfast {

class Stage;

// Where the numbers of one sample are, row-major. The memory belongs to the caller.
struct Sample {
  std::span<float> features;
  std::span<float> targets;
};

struct BatchOptions {
  bool drop_remainder = false;  // leave out the samples at an epoch's end that do not fill a batch
};

struct PrefetchOptions {
  int threads = 1;  // of each replica, that load one batch together; on CPUs they compete with those that train
};

struct SplitOptions {
  std::uint64_t seed = 0;  // another one draws other parts; independent of the run's seed
  // Each class has the same share of both parts, and at least one sample in each. Samples whose targets are equal are
  // one class, so that both numbers of classes and one-hot rows will do. Reads the targets of all samples once, in
  // epoch 0. After a map() that changes samples in place, this calls the map's function for each sample.
  bool by_label = false;
};

struct DatasetSplit;

class Dataset {
 public:
  // Changes a sample in place.
  using MapFunction = std::function<void(Sample, Random&)>;
  // Makes the features of a sample from those before; targets stay.
  using FeatureFunction = std::function<void(std::span<const float>, std::span<float>, Random&)>;

  // Sources of the library use this; users begin with from_tensors() or read_idx().
  explicit Dataset(std::shared_ptr<const Stage> stage);

  // Of one sample.
  const Shape& feature_shape() const;
  const Shape& target_shape() const;
  // Samples in an epoch.
  std::int64_t size() const;

  // Calls `function` on each sample as it is loaded, from any thread, several at once. What it draws from its Random
  // belongs to (seed, epoch, position, this stage), position counted where the map stands: before a shuffle it is the
  // sample's own. A function must depend on nothing else, or a resumed run has other bits. Its code cannot be part of
  // the description(): change `name` with it. Throws Error{invalid_argument} for an empty function.
  Dataset map(MapFunction function, std::string name = "") const;
  Dataset map(Shape new_feature_shape, FeatureFunction function, std::string name = "") const;

  // Another order in each epoch: every one of all samples is equally likely, by Fisher and Yates. With a window, each
  // run of that many samples is shuffled in itself, which keeps reads of a large source near each other; a window as
  // long as the data, or longer, shuffles all of it. Holds the last two orders, 4 bytes a sample of the window. Throws
  // Error{invalid_argument} unless 0 < window, Error{unsupported} for windows of more than 2^32 - 1 samples.
  Dataset shuffle() const;
  Dataset shuffle(std::int64_t window) const;

  // The first `count` samples of each epoch, or the rest; all of them when there are fewer. After shuffle() these are
  // other samples in each epoch: to keep samples apart for validation, use split(), or take() and skip() before
  // shuffle(). Throw Error{invalid_argument} for negative counts.
  Dataset take(std::int64_t count) const;
  Dataset skip(std::int64_t count) const;

  // Draws which samples are for validation, a fraction of them or so many, and which are for training:
  //
  //   const auto [training, validation] = data.split(0.2);
  //   trainer.fit(training.shuffle().batch(128), {.epochs = 5, .validation = validation.batch(128)});
  //
  // Every sample is in one part and never in the other, in all epochs, whatever stages follow in either. The draw is a
  // function of the seed, the number of samples and, by label, their classes: the same in each replica and each start,
  // and part of the description(). Both parts keep the order of the data. A part may be split again, for a third one to
  // test on. Holds 4 bytes a sample.
  //
  // Throws Error{invalid_argument} unless the fraction lies between 0 and 1, or the count between 1 and size() - 1.
  // Also where a part would have no sample (by label: no sample of a class), for targets that are NaN by label, and
  // after shuffle() or repeat(), where a sample would come into both parts. Throws Error{unsupported} for more than
  // 2^32 - 1 samples.
  template <std::floating_point Fraction>
  DatasetSplit split(Fraction for_validation, SplitOptions options = {}) const;
  template <std::integral Count>
  requires(!std::same_as<Count, bool>) DatasetSplit split(Count for_validation, SplitOptions options = {})
  const;

  // Makes one epoch out of `count` epochs, each with a shuffle and draws of its own. Throws Error{invalid_argument}
  // unless 0 < count.
  Dataset repeat(std::int64_t count) const;

  // How the samples are grouped, and how many batches are loaded ahead by threads of their own (0: none). More than one
  // thread pays where map() functions take longer than training does; no bit depends on their number, and what a
  // function throws is that of the first sample in order. Both come behind all other stages, once each:
  // Error{invalid_argument} otherwise, for a batch of no samples, for a negative depth, for fewer than one thread, and
  // for more than one with a depth of 0.
  Dataset batch(std::int64_t samples, BatchOptions options = {}) const;
  Dataset prefetch(int depth, PrefetchOptions options = {}) const;

  // Has all samples of the source copied once to the device that trains, which takes batches from there: for data that
  // its memory holds beside the model. Stands where batch() does, once. The same bits as without, and nothing else on
  // CPUs. Throws Error{invalid_argument} behind a map(), which makes other samples in each epoch.
  Dataset keep_on_device() const;

  // 0 without batch().
  std::int64_t batch_size() const { return batch_size_; }
  // In an epoch; the last one may be smaller. 0 without batch().
  std::int64_t batches() const;
  int prefetch_depth() const { return prefetch_depth_; }
  int prefetch_threads() const { return prefetch_threads_; }
  bool is_kept_on_device() const { return is_kept_on_device_; }

  // Writes the sample at a position in [0, size()) of an epoch, counted from 0. Throws Error{invalid_argument} for
  // other positions, for negative epochs and for destinations of another size; what a map function throws passes
  // through. The destination then holds anything.
  void load(std::uint64_t seed, std::int64_t epoch, std::int64_t position, Sample destination) const;

  // What the bits of a run depend on, as JSON: stages, sizes, shapes and a digest of the source's content, without
  // paths. The same text for the same data set.
  std::string description() const;

  // For Holdfast's own use.
  const std::shared_ptr<const Stage>& last_stage() const { return stage_; }

 private:
  void check_is_open(const std::string& stage) const;
  DatasetSplit split_off_fraction(double fraction, const SplitOptions& options) const;
  DatasetSplit split_off(std::int64_t count, const SplitOptions& options) const;

  std::shared_ptr<const Stage> stage_;
  std::int64_t batch_size_ = 0;
  bool drop_remainder_ = false;
  bool is_prefetched_ = false;
  int prefetch_depth_ = 0;
  int prefetch_threads_ = 1;
  bool is_kept_on_device_ = false;
};

// The parts of Dataset::split().
struct DatasetSplit {
  Dataset training;
  Dataset validation;
};

template <std::floating_point Fraction>
DatasetSplit Dataset::split(Fraction for_validation, SplitOptions options) const {
  return split_off_fraction(static_cast<double>(for_validation), options);
}

template <std::integral Count>
requires(!std::same_as<Count, bool>) DatasetSplit Dataset::split(Count for_validation, SplitOptions options)
const {
  return split_off(static_cast<std::int64_t>(for_validation), options);
}

// One sample for each entry along the first axis. Throws Error{invalid_argument} when the two have different first axes
// or none.
Dataset from_tensors(Tensor features, Tensor targets);

}  // namespace holdfast
