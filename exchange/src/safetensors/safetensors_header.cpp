// The header of a safetensors file may come from anybody. It is parsed by events, so that no tree of JSON is built
// and deep nesting costs nothing. Afterwards the arrays must cover the rest of the file exactly, without gaps and
// overlaps.

#include "safetensors/safetensors_header.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "bytes/array_checks.h"
#include "bytes/byte_source.h"
#include "bytes/json.h"
#include "holdfast/base/error.h"
#include "holdfast/base/shape_bytes.h"
#include "holdfast/base/utf8.h"

namespace holdfast::format {
namespace {

struct SafetensorsType {
  DType dtype;
  std::string_view name;
};

// Ordered as in the safetensors library, from last to first.
constexpr std::array<SafetensorsType, 13> kSafetensorsTypes = {{{DType::u64, "U64"},
                                                                {DType::i64, "I64"},
                                                                {DType::f64, "F64"},
                                                                {DType::f32, "F32"},
                                                                {DType::u32, "U32"},
                                                                {DType::i32, "I32"},
                                                                {DType::bf16, "BF16"},
                                                                {DType::f16, "F16"},
                                                                {DType::u16, "U16"},
                                                                {DType::i16, "I16"},
                                                                {DType::i8, "I8"},
                                                                {DType::u8, "U8"},
                                                                {DType::boolean, "BOOL"}}};

// The position of a type in this order.
// Every DType is in the table: an unknown one is a mistake of this code, not of a file.
std::size_t rank_of(DType dtype) {
  const auto* found = std::find_if(kSafetensorsTypes.begin(), kSafetensorsTypes.end(),
                                   [&](const SafetensorsType& type) { return type.dtype == dtype; });
  HOLDFAST_ASSERT(found != kSafetensorsTypes.end());
  return static_cast<std::size_t>(found - kSafetensorsTypes.begin());
}

// Handles the JSON parser's events. Returning false ends the parsing, for everything that the header may not hold.
//
//   start -> root <-> metadata
//            root <-> tensor <-> shape
//                     tensor <-> offsets
class HeaderEvents : public nlohmann::json_sax<Json> {
 public:
  HeaderEvents(const std::string& path, UnknownTypes unknown_types) : path_(path), unknown_types_(unknown_types) {}

  SafetensorsHeader take() { return std::move(header_); }
  const std::string& problem() const { return problem_; }
  bool is_complete() const { return state_ == State::end; }

  // The size is not known in text. Only the state decides what an object means.
  bool start_object(std::size_t /*size*/) override {
    if (state_ == State::start) return go_to(State::root);
    if (state_ == State::root && key_ == kSafetensorsMetadata) return go_to(State::metadata);
    if (state_ != State::root) return fail_at_value();
    // The entry is filled by the events that follow.
    header_.entries.push_back({.name = key_, .shape = {}});
    seen_ = {};
    return go_to(State::tensor);
  }

  bool end_object() override {
    if (state_ == State::root) return go_to(State::end);
    if (state_ == State::tensor && (!seen_.dtype || !seen_.shape || !seen_.offsets)) {
      return fail(
          fmt::format("array {} lacks its dtype, shape or data_offsets", quoted_text(header_.entries.back().name)));
    }
    return go_to(State::root);
  }

  bool key(std::string& name) override {
    key_ = name;
    if (state_ == State::root && key_ == kSafetensorsMetadata) {
      if (has_metadata_) return fail("there are two \"__metadata__\"");
      has_metadata_ = true;
    }
    if (state_ == State::tensor) return tensor_key();
    return true;
  }

  bool string(std::string& text) override {
    if (state_ == State::metadata) {
      return header_.metadata.emplace(key_, text).second ||
             fail(fmt::format("there are two metadata entries {}", quoted_text(key_)));
    }
    if (state_ == State::tensor && key_ == "dtype") return take_dtype(text);
    return fail_at_value();
  }

  bool start_array(std::size_t /*size*/) override {
    if (state_ != State::tensor || key_ == "dtype") return fail_at_value();
    // tensor_key() has let no other key through.
    return go_to(key_ == "shape" ? State::shape : State::offsets);
  }

  bool end_array() override {
    // A shape may have any length, but an array has one beginning and one end.
    if (state_ == State::offsets && offsets_ != 2) return fail_at_value();
    return go_to(State::tensor);
  }

  bool number_unsigned(std::uint64_t value) override {
    SafetensorsEntry* entry = header_.entries.empty() ? nullptr : &header_.entries.back();
    if (state_ == State::shape) {
      if (entry->shape.size() == kMaxAxes) {
        throw Error(ErrorCode::unsupported,
                    fmt::format("{} has array {} with more than {} axes; reshape it before saving", path_,
                                quoted_text(entry->name), kMaxAxes));
      }
      entry->shape.push_back(value);
      return true;
    }
    if (state_ != State::offsets || offsets_ == 2) return fail_at_value();
    (offsets_++ == 0 ? entry->begin : entry->end) = value;
    return true;
  }

  bool null() override { return fail_at_value(); }
  bool boolean(bool /*value*/) override { return fail_at_value(); }
  bool number_integer(std::int64_t /*value*/) override { return fail_at_value(); }
  bool number_float(double /*value*/, const std::string& /*text*/) override { return fail_at_value(); }
  bool binary(Json::binary_t& /*value*/) override { return fail_at_value(); }
  bool parse_error(std::size_t position, const std::string& /*token*/, const Json::exception& /*error*/) override {
    return fail(fmt::format("the text is not JSON at byte {}", position));
  }

 private:
  enum class State { start, root, metadata, tensor, shape, offsets, end };

  // The keys that the current array has had so far.
  struct Seen {
    bool dtype = false;
    bool shape = false;
    bool offsets = false;
  };

  bool go_to(State state) {
    state_ = state;
    offsets_ = 0;
    return true;
  }
  // Keeps the first problem, which is the cause of later ones.
  bool fail(const std::string& problem) {
    if (problem_.empty()) problem_ = problem;
    return false;
  }
  bool fail_at_value() {
    return fail(state_ == State::start ? "the text is not a JSON object"
                                       : fmt::format("the value of {} has a wrong type or form", quoted_text(key_)));
  }

  bool tensor_key() {
    // Unknown keys are refused: they might change what the bytes mean.
    bool* seen = key_ == "dtype"          ? &seen_.dtype
                 : key_ == "shape"        ? &seen_.shape
                 : key_ == "data_offsets" ? &seen_.offsets
                                          : nullptr;
    if (seen == nullptr || *seen) {
      return fail(fmt::format("array {} has an unknown or second {}", quoted_text(header_.entries.back().name),
                              quoted_text(key_)));
    }
    *seen = true;
    return true;
  }

  bool take_dtype(const std::string& name) {
    const auto* found = std::find_if(kSafetensorsTypes.begin(), kSafetensorsTypes.end(),
                                     [&](const SafetensorsType& type) { return type.name == name; });
    if (found == kSafetensorsTypes.end()) {
      if (unknown_types_ == UnknownTypes::refuse) refuse_unknown_type(path_, header_.entries.back().name, name);
      header_.entries.back().unknown_type = name.empty() ? "without a name" : name;
      return true;
    }
    header_.entries.back().dtype = found->dtype;
    return true;
  }

  const std::string& path_;
  const UnknownTypes unknown_types_;
  State state_ = State::start;
  std::string key_;
  Seen seen_;
  std::size_t offsets_ = 0;
  bool has_metadata_ = false;
  SafetensorsHeader header_;
  std::string problem_;
};

[[noreturn]] void refuse_header(const std::string& path, const std::string& problem) {
  refuse_file(path, fmt::format("is not a valid safetensors file: in its header, {}; use another copy of it", problem));
}

void check_names(const std::string& path, const std::vector<SafetensorsEntry>& entries) {
  // Sorted here, and not in a set: a header may hold a million names.
  std::vector<std::string_view> names;
  names.reserve(entries.size());
  for (const SafetensorsEntry& entry : entries) names.push_back(entry.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) refuse_header(path, fmt::format("array {} occurs twice", quoted_text(*twice)));
}

void check_places(const std::string& path, const std::vector<SafetensorsEntry>& entries, std::uint64_t data_bytes) {
  std::uint64_t end = 0;
  for (const SafetensorsEntry& entry : entries) {
    const std::string label = fmt::format("array {}", quoted_text(entry.name));
    // Entries are sorted by their bytes, so each must begin where the one before it ends.
    if (entry.begin != end || entry.end < entry.begin || entry.end > data_bytes) {
      refuse_header(path, fmt::format("{} lies at bytes {} to {}, but must begin at {} and end by {}", label,
                                      entry.begin, entry.end, end, data_bytes));
    }
    std::uint64_t bytes = 0;
    end = entry.end;
    // How many bytes an element of an unknown type takes is not known either.
    if (!entry.unknown_type.empty()) continue;
    if (!multiply_shape(entry.shape, size_bytes(entry.dtype), bytes) || bytes != entry.end - entry.begin) {
      refuse_header(path, fmt::format("{} has {} bytes, but its shape needs {}", label, entry.end - entry.begin,
                                      bytes_for_shape(entry.shape, size_bytes(entry.dtype))));
    }
  }
  if (end != data_bytes) {
    refuse_header(path, fmt::format("the arrays end at byte {} of the {} that follow the header", end, data_bytes));
  }
}

// The caller has checked that the text is UTF-8.
std::string quote(std::string_view text) {
  return Json(text).dump();
}

}  // namespace

void refuse_unknown_type(const std::string& path, const std::string& array, const std::string& type) {
  throw Error(ErrorCode::unsupported,
              fmt::format("{} has array {} of type {}, which Holdfast does not support; convert it before saving", path,
                          quoted_text(array), quoted_text(type)));
}

SafetensorsHeader parse_safetensors_header(const std::string& path, std::string_view json, std::uint64_t data_bytes,
                                           UnknownTypes unknown_types) {
  // JSON allows blanks first, but the format's own reader does not.
  if (!json.starts_with('{')) refuse_header(path, "the first byte is not a brace");
  if (!is_utf8(json)) refuse_header(path, "some bytes are not UTF-8");
  HeaderEvents events(path, unknown_types);
  if (!Json::sax_parse(json, &events) || !events.is_complete()) refuse_header(path, events.problem());
  SafetensorsHeader header = events.take();
  check_names(path, header.entries);
  std::sort(header.entries.begin(), header.entries.end(), [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
    return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
  });
  check_places(path, header.entries, data_bytes);
  return header;
}

std::string compose_safetensors_header(const std::map<std::string, std::string>& metadata,
                                       std::span<const ArrayView> arrays) {
  // Composed by hand, since the library's map would sort the arrays by name.
  std::vector<std::string> members;
  for (const auto& [key, value] : metadata) members.push_back(quote(key) + ":" + quote(value));
  if (!metadata.empty()) members = {fmt::format("{}:{{{}}}", quote(kSafetensorsMetadata), fmt::join(members, ","))};
  std::uint64_t offset = 0;
  for (const ArrayView& array : arrays) {
    const std::uint64_t end = offset + array.bytes.size();
    members.push_back(fmt::format(R"({}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", quote(array.name),
                                  kSafetensorsTypes[rank_of(array.dtype)].name, fmt::join(array.shape, ","), offset,
                                  end));
    offset = end;
  }
  return fmt::format("{{{}}}", fmt::join(members, ","));
}

void sort_for_safetensors(std::vector<ArrayView>& arrays) {
  std::sort(arrays.begin(), arrays.end(), [](const ArrayView& a, const ArrayView& b) {
    return std::pair(rank_of(a.dtype), std::string_view(a.name)) <
           std::pair(rank_of(b.dtype), std::string_view(b.name));
  });
}

}  // namespace holdfast::format
