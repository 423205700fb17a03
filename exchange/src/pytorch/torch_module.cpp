// The graph lists the names of a state dict: arrays of the savepoint, second names of these, counters of batches, whose
// value is the number of steps, and constants, whose bytes are in the graph. It may come from a file that anybody
// wrote. docs/format.md has its rules.

#include "pytorch/torch_module.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "bytes/array_prefixes.h"
#include "bytes/byte_source.h"
#include "holdfast/base/error.h"
#include "holdfast/base/shape_bytes.h"
#include "keras_files/keras_json.h"

namespace holdfast::format {
namespace {

constexpr std::string_view kKind = "TorchModule";

// Our writer makes none of these mistakes, so the advice is to look for another file.
[[noreturn]] void refuse(const std::string& problem) {
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("the graph of the savepoint describes a module of LibTorch, and {}; give a complete savepoint",
                  problem));
}

std::string name_in_pytorch(std::string name) {
  std::ranges::replace(name, '/', '.');
  return name;
}

std::string text_of(const Json& value) {
  if (!value.is_string()) refuse("a name in it is not a text");
  return value.get<std::string>();
}

// A graph may leave out a list, which is empty then: a module without counters has none.
const Json& list_of(const Json& config, const char* key) {
  static const Json none = Json::array();
  const Json& list = member(config, key);
  if (list.is_null()) return none;
  if (!list.is_array()) refuse(fmt::format("\"{}\" is not a list", key));
  return list;
}

// Types of constants, named as in safetensors. Constants are whole numbers and truth values: floats are parameters or
// buffers, which are arrays.
std::optional<DType> dtype_of(const std::string& name) {
  static const std::map<std::string, DType> types{{"I64", DType::i64}, {"I32", DType::i32}, {"I16", DType::i16},
                                                  {"I8", DType::i8},   {"U8", DType::u8},   {"BOOL", DType::boolean}};
  const auto found = types.find(name);
  return found == types.end() ? std::nullopt : std::optional(found->second);
}

int value_of_digit(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  refuse("the bytes of a constant are not hexadecimal digits");
}

NamedArray constant_of(const Json& json) {
  NamedArray array{
      .name = name_in_pytorch(text_of(member(json, "name"))), .dtype = DType::i64, .shape = {}, .bytes = {}};
  const std::optional<DType> dtype = dtype_of(text_of(member(json, "dtype")));
  if (!dtype) refuse(fmt::format("the constant {} has an unknown type", quoted_text(array.name)));
  array.dtype = *dtype;
  for (const Json& extent : list_of(json, "shape")) {
    if (!extent.is_number_unsigned()) refuse("the shape of a constant has an impossible extent");
    array.shape.push_back(extent.get<std::uint64_t>());
  }
  const std::string digits = text_of(member(json, "bytes"));
  // An odd number of digits is refused below, with the count of bytes.
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
    array.bytes.push_back(static_cast<std::byte>(16 * value_of_digit(digits[i]) + value_of_digit(digits[i + 1])));
  }
  std::uint64_t bytes = 0;
  if (digits.size() % 2 != 0 || !multiply_shape(array.shape, size_bytes(array.dtype), bytes) ||
      bytes != array.bytes.size()) {
    refuse(fmt::format("the constant {} has not as many bytes as its shape says", quoted_text(array.name)));
  }
  return array;
}

// LibTorch and PyTorch order axes in the same way, so no element moves.
Order unchanged(const NamedArray& array) {
  Order order{.seen = array.shape, .axes = {}, .theirs = array.shape};
  for (std::size_t axis = 0; axis < array.shape.size(); ++axis) order.axes.push_back(axis);
  return order;
}

const Json& graph_in(const Json& metadata) {
  return member(metadata, "graph");
}

}  // namespace

bool describes_torch_module(const std::string& metadata) {
  try {
    return text_member(graph_in(parse_keras_json(metadata, "it")), "class_name") == kKind;
  } catch (const Error&) {
    // The reader of a graph of layers says what is wrong.
    return false;
  }
}

void walk_torch_module(const ArraySet& savepoint, Exchange& exchange) {
  const Json metadata = parse_keras_json(savepoint.metadata, "it");
  const Json& config = member(graph_in(metadata), "config");
  std::map<std::string, const NamedArray*> arrays;
  for (const NamedArray& array : savepoint.arrays) {
    if (array.name.starts_with(kModelPrefix))
      arrays.emplace(array.name.substr(std::string_view(kModelPrefix).size()), &array);
  }
  std::map<std::string, std::string> aliases;
  for (const Json& alias : list_of(config, "aliases")) {
    if (!alias.is_array() || alias.size() != 2) refuse("an entry of \"aliases\" is not a pair of names");
    aliases.emplace(text_of(alias[0]), text_of(alias[1]));
  }
  std::set<std::string> counters;
  for (const Json& counter : list_of(config, "counters")) counters.insert(text_of(counter));
  std::map<std::string, NamedArray> constants;
  for (const Json& constant : list_of(config, "constants")) {
    constants.emplace(text_of(member(constant, "name")), constant_of(constant));
  }
  const Json& step = member(metadata, "step");
  const std::int64_t steps = std::max<std::int64_t>(0, integer_value(step).value_or(0));
  std::set<std::string> taken;
  for (const Json& json : list_of(config, "arrays")) {
    const std::string name = text_of(json);
    const std::string theirs = name_in_pytorch(name);
    const auto alias = aliases.find(name);
    // A second name leads to its first one, whose kind decides: an array, a counter or a constant.
    const std::string& first = alias == aliases.end() ? name : alias->second;
    const auto array = arrays.find(first);
    if (counters.contains(first)) {
      // A module that was loaded had counted before the first step of this run.
      const std::optional<std::int64_t> start = integer_value(member(member(config, "counter_starts"), first));
      std::int64_t count = 0;
      if (__builtin_add_overflow(start.value_or(0), steps, &count)) {
        refuse(fmt::format("the counter {} exceeds 63 bits", quoted_text(name)));
      }
      exchange.count_batches(theirs, count);
    } else if (const auto constant = constants.find(first); constant != constants.end()) {
      exchange.copy(constant->second, theirs);
    } else if (array == arrays.end()) {
      refuse(fmt::format("the savepoint has no array {}", quoted_text(name)));
    } else if (alias != aliases.end()) {
      exchange.copy(*array->second, theirs);
    } else {
      // Moved once: a second name gets a copy, as an alias does.
      if (!taken.insert(name).second) refuse(fmt::format("it names the array {} twice", quoted_text(name)));
      exchange.move(*array->second, theirs, unchanged(*array->second));
    }
  }
  // An array that no name of PyTorch is for would be lost in the file without a word.
  for (const auto& [name, array] : arrays) {
    if (!taken.contains(name)) refuse(fmt::format("it does not name the array {}", quoted_text(name)));
  }
}

}  // namespace holdfast::format
