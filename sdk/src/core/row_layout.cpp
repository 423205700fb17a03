// Only this source knows where an array lies in the row of a sample. Everything between a data set and a model copies
// whole rows. Arrays that no model could read are refused here, when the data set is described, and not in its first
// step. See docs/decisions/loading.md.

#include "holdfast/core/row_layout.h"

#include <fmt/format.h>

#include <algorithm>

#include "holdfast/base/error.h"

namespace holdfast {
namespace {

constexpr std::size_t kWordBytes = sizeof(float);

std::size_t round_up(std::size_t value, std::size_t step) {
  return (value + step - 1) / step * step;
}

// In words: elements of 8 bytes begin at an even word.
std::size_t alignment_of(const ArraySpec& array) {
  return std::max<std::size_t>(1, size_bytes(array.dtype) / kWordBytes);
}

}  // namespace

std::string ArraySpec::to_string() const {
  const std::string type = fmt::format("{} {}", holdfast::name(dtype), shape.to_string());
  return name.empty() ? type : fmt::format("\"{}\" of {}", name, type);
}

bool is_sample_type(DType dtype) {
  switch (dtype) {
    case DType::f32:
    case DType::bf16:
    case DType::i32:
    case DType::i64:
    case DType::u8:
    case DType::u16:
    case DType::boolean:
      return true;
    default:
      return false;
  }
}

RowLayout::RowLayout(std::vector<ArraySpec> arrays) : arrays_(std::move(arrays)) {
  std::size_t row_alignment = 1;
  for (const ArraySpec& array : arrays_) {
    if (!is_sample_type(array.dtype)) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("samples cannot have the array {}; their types are f32, bf16, i32, i64, u8, u16 and "
                              "boolean, so convert it",
                              array.to_string()));
    }
    words_ = round_up(words_, alignment_of(array));
    // Each array begins with a word of its own, because rows are copied word by word.
    first_words_.push_back(words_);
    words_ += round_up(array.bytes(), kWordBytes) / kWordBytes;
    row_alignment = std::max(row_alignment, alignment_of(array));
  }
  // Rows lie one after another, so the array of 8-byte elements in the next row is aligned only if a row ends so.
  words_ = round_up(words_, row_alignment);
  for (const ArraySpec& array : arrays_) {
    // Names are optional, so any number of arrays may have none. A name that two arrays had would find the first only.
    const auto has_its_name = [&](const ArraySpec& other) { return !array.name.empty() && other.name == array.name; };
    if (std::ranges::count_if(arrays_, has_its_name) < 2) continue;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("two arrays of a sample are called \"{}\"; give one another name", array.name));
  }
}

std::size_t RowLayout::index_of(std::string_view name) const {
  const auto found = std::ranges::find(arrays_, name, &ArraySpec::name);
  if (found != arrays_.end()) return static_cast<std::size_t>(found - arrays_.begin());
  std::vector<std::string> names;
  for (const ArraySpec& array : arrays_) names.push_back(fmt::format("\"{}\"", array.name));
  throw Error(ErrorCode::invalid_argument,
              fmt::format("samples have no array \"{}\"; they have {}", name, fmt::join(names, ", ")));
}

ArrayRow::ArrayRow(const RowLayout& layout, std::span<float> words) : layout_(&layout), words_(words) {
  HOLDFAST_ASSERT(words.size() == layout.words());
}

std::span<std::byte> ArrayRow::bytes(std::size_t array) const {
  HOLDFAST_ASSERT(array < layout_->arrays().size());
  return std::as_writable_bytes(words_).subspan(layout_->first_word(array) * kWordBytes,
                                                layout_->arrays()[array].bytes());
}

// Only the array's own type is given out. Bits that are read as another type are numbers too, so nothing later would
// notice the mistake.
std::span<std::byte> ArrayRow::typed_bytes(std::size_t array, DType asked) const {
  if (array >= layout_->arrays().size()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("samples have {} arrays, so there is no array {}", layout_->arrays().size(), array));
  }
  const ArraySpec& spec = layout_->arrays()[array];
  if (spec.dtype == asked) return bytes(array);
  throw Error(ErrorCode::invalid_argument, fmt::format("array {} ({}) was asked for as {}; ask for its own type", array,
                                                       spec.to_string(), holdfast::name(asked)));
}

}  // namespace holdfast
