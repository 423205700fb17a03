// Elements lie one sample after another, so that short samples take little memory. A row has room for the longest one,
// because arrays of a data set have one shape; what follows needs to know nothing of lengths but padded() and
// bucketed(), which read the input "length". See docs/decisions/sequences.md.

#include "holdfast/data/sequences.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/tensor_rows.h"
#include "data/lengths/sample_length.h"
#include "data/sources/sample_weights.h"
#include "data/stages/stage.h"
#include "holdfast/base/digest.h"
#include "holdfast/base/error.h"

namespace holdfast {
namespace {

Error refused_sequences(const std::string& reason) {
  return Error(ErrorCode::invalid_argument, fmt::format("from_sequences(): {}", reason));
}

// What a source of sequences is made of. Targets are one for each position, or tensors [samples, shape].
struct SequenceArrays {
  std::vector<Tensor> inputs;
  std::vector<Tensor> targets;
  bool have_positions = false;    // the targets
  std::optional<Tensor> weights;  // [samples], where targets have positions; else the last target
  std::vector<std::int64_t> lengths;
};

// Lengths have a digest too: the same elements cut at other places are other samples.
std::vector<std::string> digests_of_sequences(const SequenceArrays& arrays) {
  std::vector<std::string> digests = {digest(std::as_bytes(std::span(arrays.lengths))).hex()};
  for (const std::vector<Tensor>* tensors : {&arrays.inputs, &arrays.targets}) {
    for (const Tensor& tensor : *tensors) digests.push_back(digest(tensor.bytes()).hex());
  }
  if (arrays.weights) digests.push_back(digest(arrays.weights->bytes()).hex());
  return digests;
}

class SequenceSource : public SourceStage {
 public:
  // Digests are taken once, since nothing changes the arrays afterwards. Pointers to the targets stay valid as long as
  // this object, because stages are never copied or moved.
  SequenceSource(SampleLayouts layouts, std::int64_t longest, SequenceArrays arrays)
      : SourceStage(std::move(layouts), static_cast<std::int64_t>(arrays.lengths.size())),
        arrays_(std::move(arrays)),
        longest_(longest),
        digests_(digests_of_sequences(arrays_)),
        begins_(arrays_.lengths.size()) {
    // A sample begins where all samples before it end. Their sum fits, as the constructor of Sequences has checked.
    std::exclusive_scan(arrays_.lengths.begin(), arrays_.lengths.end(), begins_.begin(), std::int64_t{0});
    for (const Tensor& target : arrays_.targets) target_pointers_.push_back(&target);
  }

  // Cleared first: a sample must have the same bits wherever it is loaded to, also after its last element.
  void load(std::uint64_t seed, std::int64_t epoch, std::int64_t position, Sample destination) const override {
    std::ranges::fill(destination.features, 0.0F);
    const ArrayRow row(layouts().inputs, destination.features);
    read_elements(arrays_.inputs, position, row);
    row.elements<std::int32_t>(arrays_.inputs.size())[0] = static_cast<std::int32_t>(length_of(position));
    load_targets(seed, epoch, position, destination.targets);
    check_integers(layouts(), destination, position);
  }
  void load_targets(std::uint64_t, std::int64_t, std::int64_t position, std::span<float> targets) const override {
    if (!arrays_.have_positions) return read_row(layouts().targets, target_pointers_, position, targets);
    std::ranges::fill(targets, 0.0F);
    const ArrayRow row(layouts().targets, targets);
    read_elements(arrays_.targets, position, row);
    const float weight = arrays_.weights ? arrays_.weights->values()[static_cast<std::size_t>(position)] : 1.0F;
    // The weights of positions, which are the last target. Positions beyond the length keep the 0 of the cleared row.
    std::fill_n(row.elements<float>(arrays_.targets.size()).begin(), length_of(position), weight);
  }
  std::string content() const override { return fmt::format("sequences {} {}", size(), fmt::join(digests_, " ")); }
  void describe(nlohmann::ordered_json& stages) const override {
    stages.push_back({{"kind", "sequences"}, {"digests", digests_}});
  }

 private:
  std::int64_t length_of(std::int64_t position) const { return arrays_.lengths[static_cast<std::size_t>(position)]; }

  void read_elements(const std::vector<Tensor>& from, std::int64_t position, const ArrayRow& row) const {
    const auto length = static_cast<std::size_t>(length_of(position));
    if (length == 0) return;
    for (std::size_t array = 0; array < from.size(); ++array) {
      const std::span<std::byte> to = row.bytes(array);
      // An element may itself be an array. Its size follows from the row, which has room for `longest_` of them.
      const std::size_t element_bytes = to.size() / static_cast<std::size_t>(longest_);
      const std::size_t begin = static_cast<std::size_t>(begins_[static_cast<std::size_t>(position)]) * element_bytes;
      std::memcpy(to.data(), from[array].bytes().data() + begin, length * element_bytes);
    }
  }

  const SequenceArrays arrays_;
  std::int64_t longest_;
  std::vector<std::string> digests_;
  std::vector<std::int64_t> begins_;  // of the samples among the elements
  std::vector<const Tensor*> target_pointers_;
};

// Adds arrays of sequences with the lengths of the first input.
void take_sequences(std::vector<NamedSequences> given, const char* role, const std::vector<std::int64_t>& lengths,
                    std::int64_t longest, std::vector<ArraySpec>& specs, std::vector<Tensor>& tensors) {
  for (NamedSequences& each : given) {
    if (!std::ranges::equal(each.sequences.lengths(), lengths)) {
      throw refused_sequences(
          fmt::format("{} \"{}\" has samples of other lengths than the first input; samples of two lengths are two "
                      "data sets, padded each, that zip() joins",
                      role, each.name));
    }
    const Shape& elements = each.sequences.elements().shape();
    specs.push_back({.name = std::move(each.name),
                     .shape = elements.without_batch().with_batch(longest),
                     .dtype = each.sequences.elements().dtype()});
    tensors.push_back(each.sequences.elements());
  }
}

// The inputs of a source, checked.
struct TakenInputs {
  std::vector<ArraySpec> specs;
  SequenceArrays arrays;
  std::int64_t longest = 0;
};

TakenInputs take_inputs(std::vector<NamedSequences> inputs) {
  if (inputs.empty() || inputs[0].sequences.size() == 0) throw refused_sequences("needs one input and one sample");
  TakenInputs taken;
  const Sequences& first = inputs[0].sequences;
  taken.longest = first.longest();
  if (taken.longest == 0) throw refused_sequences("all samples are empty");
  if (taken.longest > std::numeric_limits<std::int32_t>::max()) {
    throw refused_sequences(fmt::format("the longest sample has {} elements, more than 2147483647", taken.longest));
  }
  // Copied before the inputs are moved, of which `first` is one.
  taken.arrays.lengths.assign(first.lengths().begin(), first.lengths().end());
  take_sequences(std::move(inputs), "input", taken.arrays.lengths, taken.longest, taken.specs, taken.arrays.inputs);
  taken.specs.push_back({.name = kLengthName, .shape = {}, .dtype = DType::i32});
  return taken;
}

void check_count(const Tensor& tensor, const std::string& name, std::size_t samples) {
  const Shape& shape = tensor.shape();
  if (shape.rank() > 0 && shape[0] == static_cast<std::int64_t>(samples)) return;
  throw refused_sequences(
      fmt::format("\"{}\" has the shape {}, but there are {} samples; its first axis counts samples", name,
                  shape.to_string(), samples));
}

// Both kinds of from_sequences() end here.
Dataset dataset_of(TakenInputs taken, std::vector<ArraySpec> targets, bool has_weights) {
  SampleLayouts layouts{.inputs = RowLayout(std::move(taken.specs)),
                        .targets = RowLayout(std::move(targets)),
                        .has_weights = has_weights};
  return Dataset(std::make_shared<SequenceSource>(std::move(layouts), taken.longest, std::move(taken.arrays)));
}

}  // namespace

Sequences::Sequences(Tensor elements, std::vector<std::int64_t> lengths)
    : elements_(std::move(elements)), lengths_(std::move(lengths)) {
  std::int64_t sum = 0;
  // An overflow of the sum could make it equal to the first axis by accident.
  for (std::size_t i = 0; i < lengths_.size(); ++i) {
    if (lengths_[i] >= 0 && !__builtin_add_overflow(sum, lengths_[i], &sum)) continue;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("Sequences: sample {} cannot have the length {}", i, lengths_[i]));
  }
  if (elements_.shape().rank() > 0 && elements_.shape()[0] == sum) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("Sequences: the lengths of {} samples add up to {}, which must be the first axis of the "
                          "elements, and these have the shape {}",
                          lengths_.size(), sum, elements_.shape().to_string()));
}

namespace {

// Checks that samples have one kind of elements.
std::vector<std::int64_t> lengths_of_tensors(const std::vector<Tensor>& samples) {
  std::vector<std::int64_t> lengths;
  for (const Tensor& sample : samples) {
    const bool is_like_first = sample.shape().rank() > 0 && samples[0].shape().rank() > 0 &&
                               sample.dtype() == samples[0].dtype() &&
                               sample.shape().without_batch() == samples[0].shape().without_batch();
    if (!is_like_first) {
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("Sequences: sample {} is of {} {}, and the first one of {} {}; samples are [length, shape "
                      "of an element], and differ in their lengths alone",
                      lengths.size(), name(sample.dtype()), sample.shape().to_string(), name(samples[0].dtype()),
                      samples[0].shape().to_string()));
    }
    lengths.push_back(sample.shape()[0]);
  }
  return lengths;
}

Tensor joined_tensors(const std::vector<Tensor>& samples, const std::vector<std::int64_t>& lengths) {
  if (samples.empty()) throw Error(ErrorCode::invalid_argument, "Sequences: there are no samples");
  const std::int64_t sum = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  Tensor all(samples[0].shape().without_batch().with_batch(sum), samples[0].dtype());
  std::byte* end = all.bytes().data();
  for (const Tensor& sample : samples) end = std::ranges::copy(sample.bytes(), end).out;
  return all;
}

}  // namespace

Sequences::Sequences(const std::vector<Tensor>& samples)
    // Lengths are found twice, because one constructor can only call another with finished arguments. Either call
    // throws for tensors that do not fit together, whichever runs first.
    : Sequences(joined_tensors(samples, lengths_of_tensors(samples)), lengths_of_tensors(samples)) {}

std::int64_t Sequences::longest() const {
  return lengths_.empty() ? 0 : std::ranges::max(lengths_);
}

Dataset from_sequences(std::vector<NamedSequences> inputs, std::vector<NamedTensor> targets,
                       std::optional<Tensor> sample_weights) {
  TakenInputs taken = take_inputs(std::move(inputs));
  if (sample_weights) {
    check_sample_weights(*sample_weights);
    // Weights are the last target, so they take the way of every other target to the device.
    targets.push_back({.name = kSampleWeightName, .tensor = std::move(*sample_weights)});
  }
  std::vector<ArraySpec> specs;
  for (NamedTensor& target : targets) {
    check_count(target.tensor, target.name, taken.arrays.lengths.size());
    specs.push_back({.name = std::move(target.name),
                     .shape = target.tensor.shape().without_batch(),
                     .dtype = target.tensor.dtype()});
    taken.arrays.targets.push_back(std::move(target.tensor));
  }
  return dataset_of(std::move(taken), std::move(specs), sample_weights.has_value());
}

Dataset from_sequences(std::vector<NamedSequences> inputs, std::vector<NamedSequences> targets,
                       std::optional<Tensor> sample_weights) {
  TakenInputs taken = take_inputs(std::move(inputs));
  std::vector<ArraySpec> specs;
  take_sequences(std::move(targets), "target", taken.arrays.lengths, taken.longest, specs, taken.arrays.targets);
  // From here on, every target of this source has one entry for each position of its sample.
  taken.arrays.have_positions = true;
  if (sample_weights) {
    check_sample_weights(*sample_weights);
    check_count(*sample_weights, kSampleWeightName, taken.arrays.lengths.size());
    if (sample_weights->shape().rank() != 1) {
      throw refused_sequences("sample weights are [samples] here; positions get the weight of their sample");
    }
    taken.arrays.weights = std::move(sample_weights);
  }
  // Always there, with or without weights of the user: they are what tells losses and metrics of padding.
  specs.push_back({.name = kSampleWeightName, .shape = Shape{taken.longest}, .dtype = DType::f32});
  return dataset_of(std::move(taken), std::move(specs), true);
}

}  // namespace holdfast
