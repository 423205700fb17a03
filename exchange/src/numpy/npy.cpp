// The .npy header is the text of a Python dictionary. NumPy parses it with Python's own parser; this parser accepts
// only what NumPy writes: three known keys, one string, one truth value and one tuple. Nothing is evaluated, and
// pickled objects are refused.

#include "numpy/npy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>
#include <string_view>

#include "bytes/array_checks.h"
#include "bytes/byte_source.h"
#include "bytes/element_bytes.h"
#include "bytes/transpose.h"
#include "holdfast/base/error.h"
#include "holdfast/base/shape_bytes.h"

namespace holdfast::format {
namespace {

constexpr std::size_t kNpyAlignment = 64;

// The number in a name is the size in bytes, so each type has one name on every machine.
struct NpyType {
  DType dtype;
  std::string_view name;  // without the byte order
};

// bf16 has the name that ml_dtypes uses.
constexpr std::array<NpyType, 13> kNpyTypes = {{{DType::f64, "f8"},
                                                {DType::f32, "f4"},
                                                {DType::f16, "f2"},
                                                {DType::bf16, "V2"},
                                                {DType::i8, "i1"},
                                                {DType::i16, "i2"},
                                                {DType::i32, "i4"},
                                                {DType::i64, "i8"},
                                                {DType::u8, "u1"},
                                                {DType::u16, "u2"},
                                                {DType::u32, "u4"},
                                                {DType::u64, "u8"},
                                                {DType::boolean, "b1"}}};

// An array in a file, for errors.
struct NpyArray {
  const std::string& path;
  const std::string& array;

  [[noreturn]] void refuse(const std::string& problem) const {
    throw NpyError(ErrorCode::invalid_file,
                   fmt::format("{} is damaged: {} {}; use another copy of it", path,
                               array.empty() ? "its array" : fmt::format("array {}", quoted_text(array)), problem),
                   fmt::format("{} {}", quoted_text(array), problem));
  }
  [[noreturn]] void unsupported(const std::string& problem) const {
    throw NpyError(ErrorCode::unsupported,
                   fmt::format("{} has {} {}", path,
                               array.empty() ? "an array" : fmt::format("array {}", quoted_text(array)), problem),
                   fmt::format("{} is an array {}", quoted_text(array), problem));
  }
};

// Parses {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), } and nothing else of Python.
class DictionaryParser {
 public:
  DictionaryParser(const NpyArray& place, std::string_view text) : place_(place), text_(text) {}

  void parse(NpyHeader& header) {
    // Each key occurs exactly once. Python would take the last of two, other readers the first.
    bool has_type = false;
    bool has_order = false;
    bool has_shape = false;
    expect("{");
    while (!take("}")) {
      const std::string_view key = string();
      expect(":");
      if (key == "descr" && !has_type) {
        has_type = true;
        read_type(header);
      } else if (key == "fortran_order" && !has_order) {
        has_order = true;
        header.is_fortran = truth();
      } else if (key == "shape" && !has_shape) {
        has_shape = true;
        header.shape = tuple();
      } else {
        fail();
      }
      // Only the last entry may lack a comma.
      if (!take(",")) {
        expect("}");
        break;
      }
    }
    skip_space();
    if (!text_.empty() || !has_type || !has_order || !has_shape) fail();
  }

 private:
  [[noreturn]] void fail() const { place_.refuse("has a header that NumPy does not write"); }

  void skip_space() { text_.remove_prefix(std::min(text_.find_first_not_of(" \t\n"), text_.size())); }

  bool take(std::string_view wanted) {
    skip_space();
    if (!text_.starts_with(wanted)) return false;
    text_.remove_prefix(wanted.size());
    return true;
  }
  void expect(std::string_view wanted) {
    if (!take(wanted)) fail();
  }

  // No escapes: NumPy writes none, and a name with one would have to be decoded.
  std::string_view string() {
    const char quote = take("'") ? '\'' : '"';
    if (quote == '"') expect("\"");
    const std::size_t end = text_.find(quote);
    if (end == std::string_view::npos) fail();
    const std::string_view content = text_.substr(0, end);
    if (content.find('\\') != std::string_view::npos) fail();
    text_.remove_prefix(end + 1);
    return content;
  }

  bool truth() {
    if (take("True")) return true;
    if (!take("False")) fail();
    return false;
  }

  std::uint64_t integer() {
    skip_space();
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
    if (error != std::errc()) fail();
    const auto digits = static_cast<std::size_t>(end - text_.data());
    // Python refuses such numbers, since they once were octal.
    if (digits > 1 && text_.starts_with('0')) fail();
    text_.remove_prefix(digits);
    take("L");  // as Python 2 wrote it
    return value;
  }

  // Accepts (), (3,), (3, 4) and (3, 4,), but not (3), which is not a tuple in Python.
  std::vector<std::uint64_t> tuple() {
    std::vector<std::uint64_t> numbers;
    bool has_comma = true;
    expect("(");
    while (!take(")")) {
      if (!has_comma) fail();
      if (numbers.size() == kMaxAxes) {
        // Arrays of Holdfast have at most this many axes, like those of NumPy 1.
        place_.unsupported(fmt::format("with more than {} axes; reshape it before saving", kMaxAxes));
      }
      numbers.push_back(integer());
      has_comma = take(",");
    }
    if (numbers.size() == 1 && !has_comma) fail();
    return numbers;
  }

  void read_type(NpyHeader& header) {
    skip_space();
    if (!text_.starts_with('\'') && !text_.starts_with('"')) {
      place_.unsupported("of a structured type; save each of its fields as a separate array");
    }
    const std::string_view name = string();
    // A pickle is a program. It is refused by its type, before any of its bytes is read.
    if (name.ends_with('O')) {
      place_.unsupported("of Python objects, which cannot be read without running code; save plain numbers");
    }
    const auto* found = std::find_if(kNpyTypes.begin(), kNpyTypes.end(),
                                     [&](const NpyType& type) { return !name.empty() && type.name == name.substr(1); });
    // Types of one byte and voids may have any order or "|"; all others must say which order they have.
    const bool is_ordered = found != kNpyTypes.end() && size_bytes(found->dtype) > 1 && found->dtype != DType::bf16;
    const bool has_order = name.starts_with('<') || name.starts_with('>');
    if (found == kNpyTypes.end() || (is_ordered ? !has_order : !has_order && !name.starts_with('|'))) {
      place_.unsupported(fmt::format("of NumPy's type {}, which Holdfast does not support; convert it before saving",
                                     quoted_text(name)));
    }
    header.dtype = found->dtype;
    header.is_big_endian = name.starts_with('>');
  }

  const NpyArray& place_;
  std::string_view text_;
};

// Returns the same elements with the last axis varying fastest.
std::vector<std::byte> row_major(std::span<const std::byte> bytes, std::size_t element_bytes,
                                 std::span<const std::uint64_t> shape) {
  // In Fortran order, the elements are those of a row-major array with the axes reversed.
  const std::vector<std::uint64_t> reversed(shape.rbegin(), shape.rend());
  std::vector<std::size_t> axes(shape.size());
  std::iota(axes.rbegin(), axes.rend(), std::size_t{0});
  return transpose(bytes, element_bytes, reversed, axes);
}

}  // namespace

NpyHeader parse_npy_header(const std::string& path, const std::string& array, std::span<const std::byte> bytes) {
  const NpyArray place{path, array};
  // What is shorter has no dictionary. Asked here, since the cursor does not know which array it is.
  if (bytes.size() < kNpyMagic.size() + 6) place.refuse("ends within its header");
  ByteCursor cursor(path, "the header of an array", bytes);
  if (cursor.text(kNpyMagic.size()) != kNpyMagic) place.refuse("does not begin like a .npy file");
  const std::uint16_t version = cursor.u16();  // the major number first
  if (version < 1 || version > 3) {
    place.unsupported(fmt::format("in version {}.{} of .npy; save it with a NumPy that writes version 1.0, 2.0 or 3.0",
                                  version % 256, version / 256));
  }
  const std::size_t text_bytes = version == 1 ? cursor.u16() : cursor.u32();
  // Version 2.0 allows 4 GiB of header, for structured types that are refused anyway.
  if (text_bytes > kMaxNpyHeadBytes - 12) {
    place.refuse(fmt::format("has a header of {} bytes, longer than any that NumPy writes", text_bytes));
  }
  if (text_bytes > cursor.left()) place.refuse("ends within its header");
  const std::string text = cursor.text(text_bytes);
  NpyHeader header;
  header.data_offset = bytes.size() - cursor.left();
  DictionaryParser(place, text).parse(header);
  return header;
}

std::uint64_t check_npy_size(const std::string& path, const std::string& array, const NpyHeader& header,
                             std::uint64_t file_bytes) {
  std::uint64_t data_bytes = 0;
  if (!multiply_shape(header.shape, size_bytes(header.dtype), data_bytes) ||
      data_bytes != file_bytes - header.data_offset) {
    NpyArray{path, array}.refuse(fmt::format("has {} bytes of elements, but its shape needs {}",
                                             file_bytes - header.data_offset,
                                             bytes_for_shape(header.shape, size_bytes(header.dtype))));
  }
  return data_bytes;
}

void check_and_swap(const std::string& path, const std::string& array, const NpyHeader& header,
                    std::span<std::byte> elements) {
  if (header.dtype == DType::boolean && !holds_booleans(elements)) {
    NpyArray{path, array}.refuse("is boolean but holds bytes other than 0 and 1");
  }
  if (header.is_big_endian) swap_bytes(elements, size_bytes(header.dtype));
}

NamedArray parse_npy(const std::string& path, const std::string& name, std::vector<std::byte> bytes) {
  NpyHeader header = parse_npy_header(path, name, bytes);
  check_npy_size(path, name, header, bytes.size());
  // The header is removed in place, so that the elements are never held twice.
  bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(header.data_offset));
  check_and_swap(path, name, header, bytes);
  if (header.is_fortran && header.shape.size() > 1) bytes = row_major(bytes, size_bytes(header.dtype), header.shape);
  return {name, header.dtype, std::move(header.shape), std::move(bytes)};
}

std::vector<std::byte> compose_npy_header(const ArrayView& array) {
  const auto* type = std::find_if(kNpyTypes.begin(), kNpyTypes.end(),
                                  [&](const NpyType& entry) { return entry.dtype == array.dtype; });
  HOLDFAST_ASSERT(type != kNpyTypes.end());
  // A tuple of one element keeps its comma.
  const std::string shape = fmt::format("{}{}", fmt::join(array.shape, ", "), array.shape.size() == 1 ? "," : "");
  std::string text = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}), }}",
                                 size_bytes(array.dtype) == 1 ? "|" : "<", type->name, shape);
  // The magic string, two bytes of version and two of length. Spaces fill up the header, and a line feed ends it, as
  // in NumPy.
  const std::size_t prefix = kNpyMagic.size() + 4;
  const std::size_t total = (prefix + text.size() + 1 + kNpyAlignment - 1) / kNpyAlignment * kNpyAlignment;
  text.resize(total - prefix - 1, ' ');
  text += '\n';
  // 32 axes of 20 digits each are far below the 16-bit length of version 1.0.
  std::string header(kNpyMagic);
  header += {'\1', '\0', static_cast<char>(text.size()), static_cast<char>(text.size() >> 8)};
  header += text;
  const auto header_bytes = std::as_bytes(std::span(header));
  return {header_bytes.begin(), header_bytes.end()};
}

}  // namespace holdfast::format
