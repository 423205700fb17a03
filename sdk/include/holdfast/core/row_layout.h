#pragma once

// Samples of several arrays and types. A data set names its arrays (ArraySpec). On the way to a model, the
// arrays of a sample lie one after another in a row of 4-byte words (RowLayout), and an ArrayRow reads and
// writes them there:
//
//   const RowLayout layout({{"image", {28, 28}, DType::u8}, {"age", {}, DType::f32}});
//   std::vector<float> row(layout.words());
//   ArrayRow(layout, row).elements<std::uint8_t>("image")[0] = 255;
//
// This row has 197 words: 784 bytes of the image, and the age. A row of one f32 array is that array. Only
// the ends of the way know types: rows are copied word by word, and no bit of a word changes.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/base/dtype.h"
#include "holdfast/core/shape.h"

namespace holdfast {

// One array of a sample. Data sets and models describe their inputs and targets with lists of these, and are compared
// by them.
struct ArraySpec {
  std::string name;          // empty: known by its position alone
  Shape shape;               // of one sample
  DType dtype = DType::f32;  // of its elements

  // The size of its elements, without padding.
  std::size_t bytes() const { return static_cast<std::size_t>(shape.element_count()) * size_bytes(dtype); }
  // For messages: "\"ids\" of i32 [128]".
  std::string to_string() const;
  friend bool operator==(const ArraySpec&, const ArraySpec&) = default;
};

// The C++ types that elements of arrays have: float, 32- and 64-bit integers, 8- and 16-bit integers without a sign,
// and bool. There is none for bf16: it is written as bytes.
template <typename T>
concept ElementType = std::same_as<T, float> || std::same_as<T, std::int32_t> || std::same_as<T, std::int64_t> ||
    std::same_as<T, std::uint8_t> || std::same_as<T, std::uint16_t> || std::same_as<T, bool>;

// The DType of elements that are T in C++.
template <ElementType T>
constexpr DType dtype_of() {
  if constexpr (std::same_as<T, float>) return DType::f32;
  if constexpr (std::same_as<T, std::int32_t>) return DType::i32;
  if constexpr (std::same_as<T, std::int64_t>) return DType::i64;
  if constexpr (std::same_as<T, std::uint8_t>) return DType::u8;
  if constexpr (std::same_as<T, std::uint16_t>) return DType::u16;
  if constexpr (std::same_as<T, bool>) return DType::boolean;
}

// Whether samples may have this type: f32, bf16, i32, i64, u8, u16 or boolean. Files may hold others; they are
// converted before they are samples.
bool is_sample_type(DType dtype);

// Where each array lies in the row of a sample: in the order that was given, each from a word of its own on. Immutable,
// so any thread may use it.
class RowLayout {
 public:
  // Throws Error{invalid_argument} for a type that samples cannot have, and for a name that two arrays have. Any number
  // of arrays may have no name.
  explicit RowLayout(std::vector<ArraySpec> arrays);

  std::span<const ArraySpec> arrays() const { return arrays_; }  // in the order in which they lie in a row
  // The 4-byte words of a row. Even if an array has elements of 8 bytes, so that each row is aligned for it.
  std::size_t words() const { return words_; }
  // Where an array begins in its row.
  std::size_t first_word(std::size_t array) const { return first_words_[array]; }
  // Whether a row is one array of f32, so that rows are [samples, shape].
  bool is_plain() const { return arrays_.size() == 1 && arrays_[0].dtype == DType::f32; }
  // The position of the array of that name. Throws Error{invalid_argument} that lists the names if no array has it.
  std::size_t index_of(std::string_view name) const;

  // Whether both have the same arrays, names included.
  friend bool operator==(const RowLayout& a, const RowLayout& b) { return a.arrays_ == b.arrays_; }

 private:
  std::vector<ArraySpec> arrays_;
  std::vector<std::size_t> first_words_;
  std::size_t words_ = 0;
};

// A view of one row. The caller owns the words and the layout, and both must outlive the view and the spans that it
// gives out.
class ArrayRow {
 public:
  // Asserts that there are layout.words() words.
  ArrayRow(const RowLayout& layout, std::span<float> words);

  const RowLayout& layout() const { return *layout_; }  // must outlive the row
  std::span<float> words() const { return words_; }     // all of the row

  // The elements of one array, row-major. Throws Error{invalid_argument} if they have another type: the bits of one
  // type are numbers of each other one, so nothing later would notice. It also throws for an array that is not there.
  template <ElementType T>
  std::span<T> elements(std::size_t array) const {
    const std::span<std::byte> found = typed_bytes(array, dtype_of<T>());
    return {reinterpret_cast<T*>(found.data()), found.size() / sizeof(T)};
  }
  template <ElementType T>
  std::span<T> elements(std::string_view name) const {
    return elements<T>(layout_->index_of(name));
  }
  // The elements of one array as bytes, whatever their type. Asserts that the array exists.
  std::span<std::byte> bytes(std::size_t array) const;

 private:
  std::span<std::byte> typed_bytes(std::size_t array, DType asked) const;

  const RowLayout* layout_;
  std::span<float> words_;
};

}  // namespace holdfast
