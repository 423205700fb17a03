#pragma once

// Samples for training, and the stages that they pass through. Every stage has random access: the sample at a position
// of an epoch, and the numbers that map() functions draw for it, are a pure function of (seed, epoch, position). A run
// therefore resumes at any position, and each replica loads only the samples of its own shards.
//
//   Dataset train = read_idx(images, labels).shuffle().map(shift_a_little, "shift").batch(256).prefetch(2);
//   trainer.fit(train, {.epochs = 5});
//
// A Dataset is a handle on immutable stages: cheap to copy and safe to use from several threads. It holds no cursor and
// reads nothing ahead by itself. Each function below that returns a Dataset leaves this one as it is. Stages that
// keep a choice or an order of samples throw Error{unsupported} for more than 2^32 - 1 of them.

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "holdfast/core/random.h"
#include "holdfast/core/row_layout.h"
#include "holdfast/core/shape.h"
#include "holdfast/core/tensor.h"
#include "holdfast/data/skipped_samples.h"

namespace holdfast {

class Stage;
struct PictureChange;

// The numbers of one sample, row-major. The caller owns the memory. If the sample has other arrays than one
// of f32, these are the rows that RowLayout describes.
struct Sample {
  std::span<float> features;  // what the model sees
  std::span<float> targets;   // what the loss compares with
};

// The arrays of one sample, for functions of samples with several arrays or with other types than f32:
//
//   data.map([](const SampleArrays& sample, Random&) {
//     for (std::int32_t& id : sample.inputs.elements<std::int32_t>("ids")) id = std::min(id, 999);
//   }, "rare words");
struct SampleArrays {
  ArrayRow inputs;   // of the model
  ArrayRow targets;  // then the weight of the sample, "sample_weight", if the data set has weights
};

// How Dataset::map() treats a function.
struct MapOptions {
  // Whether the function draws from its Random. One that does not makes the same sample in each epoch, so cache() may
  // follow it. A draw in spite of `false` ends loading with Error{invalid_argument} that names the map.
  bool draws = true;
};

// How Dataset::batch() groups samples. At most one of the two may be set.
struct BatchOptions {
  bool drop_remainder = false;  // leave out the samples at the end of an epoch that do not fill a batch
  // Fill the last batch of an epoch with copies of its last sample that have the weight 0, so that all batches have one
  // size. Samples get weights for it, of 1 where they had none.
  bool pad_remainder = false;
};

// Which samples Dataset::skip_bad() leaves out.
struct SkipBadOptions {
  std::int64_t at_most = 0;  // more bad samples than these are an error; it must be given, 1 or more
  int threads = 1;           // that load samples; nothing depends on them
  // A file that keeps what was found, so that samples are looked at once and not at each start of the program. It is
  // written if it is not there. Empty: none.
  std::string index = "";
};

// How Dataset::filter() finds its samples.
struct FilterOptions {
  std::string name{};  // of the function, in descriptions and messages
  // A file that keeps what the function said, so that samples are looked at once and not by each replica and at each
  // start. It is written if it is not there, appears when it is whole, and has digests. The name stands for the
  // function: give a changed one another name, or remove the file. Empty: none.
  std::string index{};
};

// How Dataset::cache() fills a file.
struct CacheOptions {
  int threads = 1;  // that load samples for a file which is not there yet; no byte of it depends on them
};

// How Dataset::prefetch() loads batches.
struct PrefetchOptions {
  // As many threads as load a batch in the time of a step, by what both took so far, up to the cores of the replica.
  static constexpr int automatic = 0;

  int threads = 1;  // per replica; they load one batch together and, on CPUs, compete with training
};

// Which targets a window of samples has.
enum class WindowTargets {
  last,  // those of the last sample: what follows from the window
  all,   // those of all samples, with a leading axis as the inputs have it
};

// How Dataset::window() slides.
struct WindowOptions {
  std::int64_t stride = 1;                      // positions from one sample of a window to the next
  std::int64_t shift = 1;                       // positions from one window to the next
  WindowTargets targets = WindowTargets::last;  // see WindowTargets
};

// The end of a sample at which padding stands.
enum class PaddingSide { end, begin };

// What becomes of a sample that is longer than padded() makes it.
enum class Truncation {
  refuse,      // it is an error that names the sample
  keep_begin,  // it loses elements at its end
  keep_end,    // and at its beginning
};

// What the inputs still say of the length of a sample after padded().
enum class LengthInput {
  none,    // nothing
  length,  // "length", i32 []: the elements that were kept
  mask,    // "mask", f32 [length]: 1 for an element, 0 for padding
};

// How Dataset::padded() makes samples equally long.
struct PaddedOptions {
  double value = 0;  // of the padding in inputs; their types must hold it. Targets get 0, which no loss looks at
  PaddingSide side = PaddingSide::end;         // see PaddingSide
  Truncation truncation = Truncation::refuse;  // see Truncation
  LengthInput keep = LengthInput::none;        // see LengthInput
};

// Which samples come into one batch.
struct BucketOptions {
  // The longest sample of each bucket but the last, rising: {16, 32} makes the buckets 0 to 16, 17 to 32, and above 32.
  std::vector<std::int64_t> bounds;
  bool shuffle = true;  // false: the order of the data in each bucket, and buckets one after another, in all epochs
  // The length of a sample, where it does not stand in an input "length".
  std::function<std::int64_t(const SampleArrays&)> length_of = nullptr;
  // A file that keeps the lengths, as FilterOptions::index. Remove it if length_of changes. Empty: none.
  std::string index{};
};

// How Dataset::split() draws.
struct SplitOptions {
  std::uint64_t seed = 0;  // another seed draws other parts; independent of the seed of the run
  // Give each class the same share of both parts, and at least one sample in each. Samples with equal targets form a
  // class, so class numbers and one-hot rows both work. This reads the targets of all samples once, in epoch 0. If a
  // map() before changes samples in place, it calls the function of that map for each sample.
  bool by_label = false;
};

struct DatasetSplit;

class Dataset {
 public:
  // Changes a sample in place.
  using MapFunction = std::function<void(Sample, Random&)>;
  // Computes new features (second argument) from the old ones (first argument). Targets stay.
  using FeatureFunction = std::function<void(std::span<const float>, std::span<float>, Random&)>;
  // The same for samples of any arrays.
  using ArrayMapFunction = std::function<void(const SampleArrays&, Random&)>;
  // Computes new inputs (second argument) from the old ones (first argument). Targets stay.
  using InputMapFunction = std::function<void(const ArrayRow&, const ArrayRow&, Random&)>;
  // Whether to keep a sample.
  using FilterFunction = std::function<bool(const SampleArrays&)>;

  // For sources within the library. Applications begin with from_tensors(), read_idx() or from_source().
  explicit Dataset(std::shared_ptr<const Stage> stage);

  // The shapes of one sample. Throw Error{invalid_argument} if it has several inputs or targets.
  const Shape& feature_shape() const;
  const Shape& target_shape() const;
  // The arrays of one sample, valid as long as this data set; targets() leaves out the weights.
  std::span<const ArraySpec> inputs() const;
  std::span<const ArraySpec> targets() const;  // without the weights; valid as long as this data set
  // Whether each sample has a weight, or one for each position of its targets.
  bool has_sample_weights() const;
  // How they lie in the rows of load(). Weights are the last array of the targets.
  const RowLayout& input_layout() const;
  const RowLayout& target_layout() const;
  // The number of samples in an epoch.
  std::int64_t size() const;

  // Calls `function` on each sample as it is loaded, from any thread, several at once. Its draws from
  // the Random belong to (seed, epoch, position, this stage). The position is counted at this stage, so
  // before a shuffle it is the number of the sample.
  //
  // A function must depend on nothing else; otherwise a resumed run differs in its bits. description() cannot contain
  // its code, so change `name` whenever the function changes. Throws Error{invalid_argument} for an empty function.
  Dataset map(MapFunction function, std::string name = "", MapOptions options = {}) const;
  Dataset map(Shape new_feature_shape, FeatureFunction function, std::string name = "", MapOptions options = {}) const;
  // For samples of any arrays. The functions of the two above get rows, so they are for samples of one f32
  // input and one f32 target, and throw Error{invalid_argument} for others. An i64 that does not fit into
  // 32 bits ends loading with Error{invalid_argument} that names array, element and sample.
  Dataset map(ArrayMapFunction function, std::string name = "", MapOptions options = {}) const;
  Dataset map(std::vector<ArraySpec> new_inputs, InputMapFunction function, std::string name = "",
              MapOptions options = {}) const;
  // For pictures: resize(), random_crop(), augment() and others of holdfast/data/picture_changes.h, which name
  // themselves. Throws Error{invalid_argument} for samples that are not one picture.
  Dataset map(const PictureChange& change) const;

  // Mixes each sample with another one that is drawn from the whole epoch: inputs and targets become
  // share * sample + (1 - share) * other, and the share is drawn from a beta distribution with both parameters `alpha`
  // (Zhang et al.: "mixup: Beyond Empirical Risk Minimization", 2018). Share and partner are a function of (seed,
  // epoch, position), so no bit depends on batches or shards. Sample weights stay. Loads two samples for each one. In
  // front of shuffle(), `position` is the number of the sample.
  //
  //   read_pictures("flowers", {.height = 64, .width = 64, .one_hot = true}).mixup(0.2F)
  //
  // Throws Error{invalid_argument} unless 0 < alpha <= 1000, for integers among inputs (but u8, which is rounded) and
  // targets, and for scalar targets, which are usually numbers of classes.
  Dataset mixup(float alpha = 0.2F) const;
  // Replaces a rectangle of each picture by that of another one, which is drawn from the whole epoch (Yun et al.:
  // "CutMix: Regularization Strategy to Train Strong Classifiers with Localizable Features", 2019). Its area is 1 -
  // share of the picture, with a share as in mixup(), and it has the proportions of the picture and lies anywhere in
  // it. Targets become s * sample + (1 - s) * other, where s is the part of the pixels that stayed. All draws are a
  // function of (seed, epoch, position), as those of mixup().
  //
  //   read_pictures("flowers", {.height = 64, .width = 64, .one_hot = true}).cutmix()
  //
  // Takes samples of one input [height, width, channels] of f32 or u8. Throws Error{invalid_argument} as mixup() does.
  Dataset cutmix(float alpha = 1) const;

  // Keeps samples, so that each is loaded only once: in the memory of this process, as it is first asked for; or in a
  // file, which is written before this returns if it does not exist. It changes no bit and has no part in the
  // description(), so a run may go on with or without it. Put it after what costs time and is the same in each epoch,
  // and before shuffle() and augment():
  //
  //   read_pictures("flowers", {.height = 64, .width = 64}).cache("flowers.cache").shuffle().map(augment({...}))
  //
  // In memory, each replica takes 4 bytes for each word of all samples' rows, in pages that are touched as they are
  // needed. The file is shared by replicas. It appears under its name when it is whole, and holds the description of
  // what it was made of and a digest of each sample, which is checked when the sample is loaded.
  //
  // Throws Error{invalid_argument} after shuffle(), mixup(), cutmix() and maps that may draw: all but resize(),
  // center_crop(), standardize(), and those with MapOptions{.draws = false}. Throws Error{incompatible} for a file that
  // was made of other data, Error{invalid_file} for one that is damaged or no cache, which is left as it is, and what
  // the file system throws.
  Dataset cache() const;
  Dataset cache(const std::string& path, CacheOptions options = {}) const;

  // Gives each epoch an order of its own, in which all permutations are equally likely (Fisher and Yates). With a
  // window, each run of `window` samples is shuffled within itself, which keeps reads of a large source close together;
  // a window of size() or more shuffles everything. Keeps the last two orders, 4 bytes per sample of the window. Throws
  // Error{invalid_argument} unless 0 < window.
  Dataset shuffle() const;
  Dataset shuffle(std::int64_t window) const;

  // take() keeps the first `count` samples of each epoch, skip() all others. If an epoch has fewer, take() keeps all of
  // them and skip() none. After shuffle() these are other samples in each epoch. To keep samples apart for validation,
  // use split(), or take() and skip() before shuffle(). Both throw Error{invalid_argument} for a negative count.
  Dataset take(std::int64_t count) const;
  // All samples but the first `count` of each epoch.
  Dataset skip(std::int64_t count) const;

  // Keeps the samples for which the function is true:
  //
  //   data.filter([](const SampleArrays& sample) { return sample.targets.elements<float>(0)[0] < 5; }, "digits to 4")
  //
  // It is called once for each sample, as it is in epoch 0 with seed 0, before this returns; the positions that it
  // keeps are kept in all epochs and take 4 bytes each. The description has a digest of them. Throws
  // Error{invalid_argument} for an empty function, if no sample is kept, and after shuffle(), where samples have no
  // fixed position. For an index it throws what cache("FILE") does.
  Dataset filter(const FilterFunction& function, std::string name = "") const;
  // With an index: .filter(f, {.name = "digits to 4", .index = "digits_to_4.index"}).
  Dataset filter(const FilterFunction& function, FilterOptions options) const;

  // Leaves out the samples that cannot be loaded: a picture that is cut off, or one for which a map() throws. Put it
  // after the stages that may fail and before shuffle(), mixup() and cutmix():
  //
  //   read_pictures("flowers", {.height = 64, .width = 64}).skip_bad({.at_most = 20, .index = "flowers.bad.json"})
  //
  // Each sample is loaded once, as it is in epoch 0 with seed 0, before this returns. A sample is bad if that throws an
  // Error of the codes invalid_argument, invalid_file, not_found, unsupported or not_finite. Everything else passes
  // through, since it says nothing of the sample: a disk that fails, memory that is short. What was found holds for all
  // epochs and ranks, and takes 4 bytes for each sample that stays. The description has a digest of it. fit() and
  // evaluate() write the number and the first reasons to the log, the journal and results.json.
  //
  // Throws Error{invalid_argument} without at_most, if more samples are bad, if none is left, and after shuffle(),
  // bucketed(), mixup() or cutmix(); Error{incompatible} for an index of other data, and Error{invalid_file} for one
  // that is damaged, which is left as it is: remove it. An index is not looked at again when the content of files
  // changes and the description() of the data does not.
  Dataset skip_bad(const SkipBadOptions& options) const;
  // What all skip_bad() stages of this data set left out, in their order, and CsvOptions::skip_ragged.
  SkippedSamples skipped_samples() const;

  // Makes one sample of `count` samples that follow one another: inputs get a leading axis of that extent. Window w
  // begins at sample w * shift. Samples at the end that fill no window are left out. For a series of measurements, with
  // the one to predict as target:
  //
  //   from_tensors(values, next_values).window(24)  // inputs [24, ...], the target of the last of the 24
  //
  // Throws Error{invalid_argument} for numbers below 1, and if not even one window fits.
  Dataset window(std::int64_t count, WindowOptions options = {}) const;

  // Gives samples of different lengths one length, which a model needs. The input "length", an i32 or i64 that
  // from_sequences() or a source of the program's own makes, says how many elements of the first axis a sample has.
  // All other inputs, [room, ...], become [length, ...]; elements that were not used are padded, too. Targets become
  // [length, ...] if there is a weight for each position of them, and the weights of padding are 0. "length" goes, or
  // comes last, or becomes "mask":
  //
  //   from_sequences({{"words", words}}, {{"tags", tags}}).padded(64, {.truncation = Truncation::keep_begin})
  //
  // Throws Error{invalid_argument} for a length of less than 1, without an input "length", for inputs of other first
  // axes, and for a value that a type cannot hold. A sample that is too long ends loading, unless it may be truncated.
  Dataset padded(std::int64_t length, PaddedOptions options = {}) const;

  // Orders an epoch for batches of `batch` samples, so that those of one batch have similar lengths. Each bucket is
  // shuffled and cut into batches, and the batches of all buckets are shuffled. What fills no batch of its bucket comes
  // last, from short to long. Each sample comes once an epoch, and the order is a function of (seed, epoch). It takes
  // the place of shuffle(), and padded() and batch() follow it:
  //
  //   sentences.bucketed(32, {.bounds = {8, 16, 32}}).padded(64).batch(32)
  //
  // The model computes the whole length that padded() gave: a batch of short samples is not computed faster.
  //
  // Lengths are found before this returns, in epoch 0 with seed 0, as filter() does; that takes 4 bytes a sample, and
  // the last two orders 4 each. The description has a digest of the buckets. Throws Error{invalid_argument} for bounds
  // that do not rise, without them, without lengths, and after shuffle() or bucketed().
  Dataset bucketed(std::int64_t batch, BucketOptions options) const;

  // The samples of several data sets as those of one. Each draws by a seed of its own. Data sets that shuffle before
  // they are joined stay apart; shuffle() after it mixes them. Join all in one call: in {{a, b}, {c, d}}, b and c have
  // one seed, because the sum of their places is the same. Their maps and shuffles may then draw the same numbers.
  //   - concatenate: all samples of the first, then all of the second, and so on;
  //   - interleave: one of each in turns; data sets that have no more are passed over;
  //   - zip: the inputs of all side by side, and the targets likewise. Sample i has those of sample i of each.
  //
  //   Dataset::concatenate({photos, drawings}).shuffle().batch(32)
  //
  // Throw Error{invalid_argument} without data sets, and for samples of other arrays or weights; zip() for other sizes,
  // two arrays of one name, and sample weights in others than the last data set.
  static Dataset concatenate(const std::vector<Dataset>& parts);
  // The samples of all in turn: the first of each, then the second of each.
  static Dataset interleave(const std::vector<Dataset>& parts);
  // The arrays of all as those of one sample.
  static Dataset zip(const std::vector<Dataset>& parts);

  // Draws the samples for validation, as a fraction of all or as a count; the rest is for training:
  //
  //   const auto [training, validation] = data.split(0.2);
  //   trainer.fit(training.shuffle().batch(128), {.epochs = 5, .validation = validation.batch(128)});
  //
  // Each sample belongs to the same part in all epochs, whatever stages follow. The draw is a function
  // of the seed, the number of samples and, by label, their classes. It is the same in each replica and
  // each start, and it is part of the description(). Both parts keep the order of the data and take 4
  // bytes per sample. Split a part again to get a third one for testing.
  //
  // Throws Error{invalid_argument} unless the fraction lies between 0 and 1, or the count between 1 and
  // size() - 1. It also throws if a part would have no sample (by label: no sample of a class), if a target is NaN (by
  // label), and after shuffle() or repeat(), where one sample would come into both parts.
  template <std::floating_point Fraction>
  DatasetSplit split(Fraction for_validation, SplitOptions options = {}) const;
  template <std::integral Count>
  requires(!std::same_as<Count, bool>) DatasetSplit split(Count for_validation, SplitOptions options = {})
  const;

  // Makes one epoch out of `count` epochs, each with its own shuffle and draws. Throws
  // Error{invalid_argument} unless 0 < count.
  Dataset repeat(std::int64_t count) const;

  // batch() groups samples; the last batch of an epoch is smaller if they do not fill it, unless BatchOptions say
  // otherwise. A loss, and a mean of samples by their weights, are the same with padding: weights of 0 leave the sum
  // and its divisor as they are. Bits may differ in the last batch, as its samples are in other shards. What a layer
  // computes over a batch in training, such as the means of BatchNormalization, does see the copies, and so do metrics
  // that are unweighted(). predict() gives no outputs for them. prefetch() loads `depth` batches ahead with threads of
  // its own (0: none). Use more than one thread if map() functions take longer than training. No bit depends on the
  // number of threads, and if several samples fail, the failure of the first one in order is thrown.
  //
  // Both come after all other stages, at most once each. They throw Error{invalid_argument} otherwise,
  // and for a batch of no samples, a negative depth, a negative number of threads, several threads or
  // PrefetchOptions::automatic at depth 0, and pad_remainder with keep_on_device().
  Dataset batch(std::int64_t samples, BatchOptions options = {}) const;
  // Loads `depth` batches ahead with threads of its own; 0: none.
  Dataset prefetch(int depth, PrefetchOptions options = {}) const;

  // Copies all samples of the source to the training device once; batches are then taken from there.
  // Use it for data that fits into the memory of the device next to the model. It comes where batch()
  // does, once. It changes no bits and does nothing on CPUs. Throws Error{invalid_argument} after a
  // map(), which makes other samples in each epoch, and after window(), concatenate(), interleave() and zip().
  Dataset keep_on_device() const;

  // Samples per batch; 0 without batch().
  std::int64_t batch_size() const { return batch_size_; }
  // Batches per epoch; the last one may be smaller. 0 without batch().
  std::int64_t batches() const;
  // Whether an epoch leaves out the samples that do not fill its last batch (BatchOptions).
  bool drops_remainder() const { return drop_remainder_; }
  // The samples of weight 0 at the end of an epoch that fill its last batch (BatchOptions); size() counts them.
  std::int64_t padding() const;
  // What prefetch() and keep_on_device() were given; without them 0, 1 and false. 0 threads are chosen by measuring.
  int prefetch_depth() const { return prefetch_depth_; }
  int prefetch_threads() const { return prefetch_threads_; }
  bool is_kept_on_device() const { return is_kept_on_device_; }  // whether keep_on_device() was called

  // Writes the sample at `position` in [0, size()) of `epoch`, counted from 0. Throws Error{invalid_argument} for
  // another position, a negative epoch or a destination of another size, whose content is undefined after an exception.
  // What a function of the program throws comes as an Error of its code, or as a std::runtime_error if it was none,
  // with the names of sample and stage before its text. std::rethrow_if_nested() throws the exception itself.
  void load(std::uint64_t seed, std::int64_t epoch, std::int64_t position, Sample destination) const;

  // Everything about the data that the bits of a run depend on, as JSON: stages, sizes, shapes and a
  // digest of the content of the source. It holds no paths, and equal data sets give equal texts. A run
  // that resumes with another description is refused.
  std::string description() const;

  // For Holdfast's own use.
  const std::shared_ptr<const Stage>& last_stage() const { return stage_; }

 private:
  void check_is_open(const std::string& stage) const;
  // The stages of all parts, none of which may be in batches. `stage` is for messages.
  static std::vector<std::shared_ptr<const Stage>> stages_of(const std::vector<Dataset>& parts,
                                                             const std::string& stage);
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

// The two parts that Dataset::split() draws.
struct DatasetSplit {
  Dataset training;    // the larger part, in most cases
  Dataset validation;  // the part that was drawn
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

// A data set with one sample per entry along the first axis of both tensors. Throws
// Error{invalid_argument} if the first axes differ or a tensor is a scalar.
Dataset from_tensors(Tensor features, Tensor targets);

// One array of a data set: [samples, shape].
struct NamedTensor {
  std::string name;  // of the array in a sample
  Tensor tensor;     // the first axis counts samples
};

// The same for several inputs and targets, which the model takes by their names, or in this order where they have none
// of its names. `sample_weights` is f32 [samples]: the loss of a sample counts that much in the mean of a batch, which
// divides by the sum of the weights. With [samples, positions] each position of the target has a weight; 0 masks it.
//
//   from_tensors({{"user", users}, {"item", items}}, {{"rating", ratings}}, weights)
//
// Throws Error{invalid_argument} for tensors without samples or with other numbers of them, for two arrays
// of one name, and for weights below 0.
Dataset from_tensors(std::vector<NamedTensor> inputs, std::vector<NamedTensor> targets,
                     std::optional<Tensor> sample_weights = {});

// The same with weights of each target, named like the targets. The loss of each output is divided by the sum of its
// own weights. Either all are [samples], or all are [samples, positions] with the positions of their output: the axes
// of the output but the last, and none for an output of one axis, whose weights are [samples].
//
//   from_tensors({{"text", text}}, {{"topic", topics}, {"words", words}}, {{"topic", weights}, {"words", mask}})
//
// The weights of a sample follow each other in one array "sample_weight", in the order of the targets. Throws as above,
// and unless there is one array of weights for each target.
Dataset from_tensors(std::vector<NamedTensor> inputs, std::vector<NamedTensor> targets,
                     std::vector<NamedTensor> target_weights);

// The weight of each class, by its number, with which all classes count alike: samples / (classes * samples of
// the class), as scikit-learn's "balanced" does. For FitOptions::class_weights; give it the part that is trained
// on. The target is a whole number from 0 on, or a one-hot row. Classes without a sample get the weight 1 and
// do not count among the classes.
//
// Reads the targets of all samples once, in epoch 0; see SplitOptions::by_label. Throws Error{invalid_argument},
// naming the sample, for a target that is not a class, and for several targets.
std::vector<float> balanced_class_weights(const Dataset& data);

}  // namespace holdfast
