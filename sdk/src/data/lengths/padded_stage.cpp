// A model is planned for one shape of a sample, so all samples get one length here, and what is padding stands in an
// input, in the weights of positions, or in both. Arrays hold the elements of a sample first and have room for the
// longest one; what fills the room is looked at nowhere. See docs/decisions/sequences.md.

#include "data/lengths/padded_stage.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "holdfast/base/error.h"

namespace holdfast {
namespace {

constexpr const char* kMaskName = "mask";

Error refused_padding(const std::string& reason) {
  return Error(ErrorCode::invalid_argument, fmt::format("padded(): {}", reason));
}

// Written to bytes of the element's own size, which pad_inputs() repeats over the array without knowing its type.
template <typename Integer>
bool store_whole(double value, std::vector<std::byte>& bytes) {
  // The bounds of 32 bits are exact in a double. Models read no wider integers.
  const bool is_whole = value >= std::numeric_limits<std::int32_t>::min() &&
                        value <= std::numeric_limits<std::int32_t>::max() && value == std::trunc(value);
  const std::int64_t whole = is_whole ? static_cast<std::int64_t>(value) : 0;
  const auto stored = static_cast<Integer>(whole);
  bytes.resize(sizeof stored);
  std::memcpy(bytes.data(), &stored, sizeof stored);
  return is_whole && static_cast<std::int64_t>(stored) == whole;
}

// Floats must be exact too: a padding that is looked for by its value would otherwise not be found.
bool store_value(DType dtype, double value, std::vector<std::byte>& bytes) {
  const auto rounded = static_cast<float>(value);
  const auto bits = std::bit_cast<std::uint32_t>(rounded);
  const bool is_exact = static_cast<double>(rounded) == value;
  switch (dtype) {
    case DType::f32:
      bytes.resize(sizeof bits);
      std::memcpy(bytes.data(), &bits, sizeof bits);
      return is_exact;
    case DType::bf16: {
      // A bf16 is the upper half of a float, so the value is exact if the lower half is 0.
      const auto upper = static_cast<std::uint16_t>(bits >> 16);
      bytes.resize(sizeof upper);
      std::memcpy(bytes.data(), &upper, sizeof upper);
      return is_exact && (bits & 0xFFFFU) == 0;
    }
    case DType::i32:
      return store_whole<std::int32_t>(value, bytes);
    case DType::i64:
      return store_whole<std::int64_t>(value, bytes);
    case DType::u16:
      return store_whole<std::uint16_t>(value, bytes);
    case DType::u8:
      return store_whole<std::uint8_t>(value, bytes);
    default:
      return store_whole<bool>(value, bytes);
  }
}

std::vector<std::byte> bytes_of_value(const ArraySpec& array, double value) {
  std::vector<std::byte> bytes;
  if (store_value(array.dtype, value, bytes)) return bytes;
  throw refused_padding(
      fmt::format("the input {} cannot hold the value {}; choose a value of its type", array.to_string(), value));
}

ArraySpec with_length(const ArraySpec& array, std::int64_t length) {
  std::vector<std::int64_t> extents(array.shape.extents().begin(), array.shape.extents().end());
  extents[0] = length;
  return {.name = array.name, .shape = Shape(std::move(extents)), .dtype = array.dtype};
}

bool begins_with(const Shape& shape, std::int64_t extent) {
  return shape.rank() > 0 && shape[0] == extent;
}

// The positions that the arrays have room for: those of the first input that is not the length.
std::int64_t room_of(const SampleLayouts& layouts, std::size_t length_input) {
  std::int64_t room = -1;
  for (std::size_t i = 0; i < layouts.inputs.arrays().size(); ++i) {
    const ArraySpec& input = layouts.inputs.arrays()[i];
    if (i == length_input) continue;
    if (input.shape.rank() == 0 || (room >= 0 && input.shape[0] != room)) {
      throw refused_padding(
          fmt::format("the first axis of all inputs but \"{}\" is that of positions, and that of {} "
                      "is another one; pad first, and add such an input with zip() afterwards",
                      kLengthName, input.to_string()));
    }
    room = input.shape[0];
  }
  if (room < 0) throw refused_padding("there is no input but the length");
  return room;
}

// Targets that have a weight for each position follow the positions of the inputs.
bool has_targets_of_positions(const SampleLayouts& layouts, std::int64_t room) {
  if (layouts.has_weights_of_targets) {
    throw refused_padding(
        "each target has weights of its own, and they stand side by side without an axis of positions; pad the arrays "
        "and their weights before from_tensors() takes them");
  }
  return layouts.has_weights && begins_with(layouts.targets.arrays().back().shape, room);
}

SampleLayouts padded_layouts(const SampleLayouts& before, std::int64_t length, LengthInput keep) {
  if (length < 1) throw refused_padding(fmt::format("samples get a length of 1 or more, not {}", length));
  // Called from the initializers of the constructor, so everything that can be wrong
  // with the arrays is found here first.
  const std::size_t length_input = SampleLength("padded", before).index();
  const std::int64_t room = room_of(before, length_input);
  std::vector<ArraySpec> inputs;
  for (std::size_t i = 0; i < before.inputs.arrays().size(); ++i) {
    const ArraySpec& input = before.inputs.arrays()[i];
    if (i != length_input) inputs.push_back(with_length(input, length));
  }
  // The length or the mask is always the last input, wherever the length stood before.
  if (keep == LengthInput::length) inputs.push_back({.name = kLengthName, .shape = {}, .dtype = DType::i32});
  if (keep == LengthInput::mask) inputs.push_back({.name = kMaskName, .shape = Shape{length}, .dtype = DType::f32});
  std::vector<ArraySpec> targets(before.targets.arrays().begin(), before.targets.arrays().end());
  // Without weights of positions, a target that happens to be as long as the room
  // is one of the whole sample, and stays.
  if (has_targets_of_positions(before, room)) {
    for (ArraySpec& target : targets) {
      if (begins_with(target.shape, room)) target = with_length(target, length);
    }
  }
  return {.inputs = RowLayout(std::move(inputs)),
          .targets = RowLayout(std::move(targets)),
          .has_weights = before.has_weights};
}

std::string_view name_of(PaddingSide side) {
  return side == PaddingSide::end ? "end" : "begin";
}

std::string_view name_of(Truncation truncation) {
  if (truncation == Truncation::refuse) return "refuse";
  return truncation == Truncation::keep_begin ? "keep_begin" : "keep_end";
}

std::string_view name_of(LengthInput keep) {
  return keep == LengthInput::none ? "none" : keep == LengthInput::length ? "length" : "mask";
}

// The elements of `count` positions; other bytes of `to` stay.
void copy_positions(std::span<const std::byte> from, std::int64_t from_position, std::span<std::byte> to,
                    std::int64_t to_position, std::int64_t count, std::size_t position_bytes) {
  const std::size_t bytes = static_cast<std::size_t>(count) * position_bytes;
  // Null pointers must not reach memcpy(), even for no bytes.
  if (bytes == 0) return;
  std::memcpy(to.data() + static_cast<std::size_t>(to_position) * position_bytes,
              from.data() + static_cast<std::size_t>(from_position) * position_bytes, bytes);
}

}  // namespace

PaddedStage::PaddedStage(std::shared_ptr<const Stage> stage, std::int64_t length, const PaddedOptions& options)
    : ChainedStage(stage, padded_layouts(stage->layouts(), length, options.keep), stage->size()),
      length_of_("padded", stage->layouts()),
      room_(room_of(stage->layouts(), length_of_.index())),
      length_(length),
      value_(options.value),
      side_(options.side),
      truncation_(options.truncation),
      keep_(options.keep),
      pads_targets_(has_targets_of_positions(stage->layouts(), room_)) {
  for (std::size_t i = 0; i < stage->layouts().inputs.arrays().size(); ++i) {
    // The length itself is not padded, whatever its type can hold.
    padding_.push_back(i == length_of_.index() ? std::vector<std::byte>()
                                               : bytes_of_value(stage->layouts().inputs.arrays()[i], value_));
  }
}

PaddedStage::Kept PaddedStage::kept_of(const ArrayRow& inputs, std::int64_t position) const {
  const std::int64_t length = length_of_.of(inputs);
  if (length < 0 || length > room_) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("sample {} has the length {}, but its arrays have room for 0 to {} positions", position,
                            length, room_));
  }
  if (length > length_ && truncation_ == Truncation::refuse) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("sample {} has {} positions, more than the {} that padded() was given; pad to a greater "
                            "length, filter such samples out, or say which end they lose: .truncation = "
                            "Truncation::keep_begin",
                            position, length, length_));
  }
  // Truncation and side are independent: which end a long sample loses, and where a short one has its padding. A sample
  // that was cut has no padding, so then `to` is 0 for both sides.
  const std::int64_t count = std::min(length, length_);
  return {.from = truncation_ == Truncation::keep_end ? length - count : 0,
          .to = side_ == PaddingSide::end ? 0 : length_ - count,
          .count = count};
}

void PaddedStage::pad_inputs(const ArrayRow& from, const Kept& kept, std::span<float> words) const {
  // Words that belong to no element are zero, so that equal samples have equal rows.
  std::ranges::fill(words, 0.0F);
  const ArrayRow to(layouts().inputs, words);
  std::size_t output = 0;
  for (std::size_t input = 0; input < padding_.size(); ++input) {
    if (input == length_of_.index()) continue;
    const std::span<std::byte> bytes = to.bytes(output++);
    const std::vector<std::byte>& padding = padding_[input];
    // The whole array gets the padding, and the elements that stay are written over it. So the room of the stage before
    // is never read beyond the length of the sample, whatever is there.
    for (std::size_t at = 0; at < bytes.size(); at += padding.size()) {
      std::memcpy(bytes.data() + at, padding.data(), padding.size());
    }
    copy_positions(from.bytes(input), kept.from, bytes, kept.to, kept.count,
                   bytes.size() / static_cast<std::size_t>(length_));
  }
  if (keep_ == LengthInput::length) to.elements<std::int32_t>(output)[0] = static_cast<std::int32_t>(kept.count);
  // 1 where the sample has an element, so that a product with the mask leaves padding out.
  if (keep_ == LengthInput::mask) std::fill_n(to.elements<float>(output).begin() + kept.to, kept.count, 1.0F);
}

// Padding of targets and of their weights is 0, whatever `value` says: a weight of 0 is what passes over a position.
void PaddedStage::pad_targets(std::span<float> words_before, const Kept& kept, std::span<float> words) const {
  std::ranges::fill(words, 0.0F);
  const ArrayRow from(before().layouts().targets, words_before);
  const ArrayRow to(layouts().targets, words);
  for (std::size_t target = 0; target < layouts().targets.arrays().size(); ++target) {
    const std::span<std::byte> bytes = to.bytes(target);
    if (begins_with(before().layouts().targets.arrays()[target].shape, room_)) {
      copy_positions(from.bytes(target), kept.from, bytes, kept.to, kept.count,
                     bytes.size() / static_cast<std::size_t>(length_));
    } else {
      std::ranges::copy(from.bytes(target), bytes.begin());
    }
  }
}

void PaddedStage::load(std::uint64_t seed, std::int64_t epoch, std::int64_t position, Sample destination) const {
  // Targets that keep their shape are loaded to where they go. Those that change need a row of the stage before.
  std::vector<float> inputs(before().feature_words());
  std::vector<float> targets(pads_targets_ ? before().target_words() : 0);
  before().load(seed, epoch, position,
                {.features = inputs, .targets = pads_targets_ ? std::span(targets) : destination.targets});
  const ArrayRow from(before().layouts().inputs, inputs);
  const Kept kept = kept_of(from, position);
  pad_inputs(from, kept, destination.features);
  if (pads_targets_) pad_targets(targets, kept, destination.targets);
}

void PaddedStage::load_targets(std::uint64_t seed, std::int64_t epoch, std::int64_t position,
                               std::span<float> targets) const {
  // The length, by which targets of positions are cut, stands in the inputs.
  if (pads_targets_) return Stage::load_targets(seed, epoch, position, targets);
  before().load_targets(seed, epoch, position, targets);
}

void PaddedStage::describe(nlohmann::ordered_json& stages) const {
  before().describe(stages);
  stages.push_back({{"kind", "padded"},
                    {"length", length_},
                    {"value", value_},
                    {"side", name_of(side_)},
                    {"truncation", name_of(truncation_)},
                    {"keep", name_of(keep_)}});
}

Dataset Dataset::padded(std::int64_t length, PaddedOptions options) const {
  check_is_open("padded");
  return Dataset(std::make_shared<PaddedStage>(stage_, length, options));
}

}  // namespace holdfast
