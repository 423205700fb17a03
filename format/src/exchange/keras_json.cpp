#include "exchange/keras_json.h"

#include "holdfast/base/error.h"

namespace holdfast::format {
namespace {

// A parsed text takes some 30 times its length in memory at worst.
constexpr std::size_t kMaxBytes = std::size_t{64} << 20;
// The JSON library copies and prints by recursion. A model wrapped in another takes four levels.
constexpr std::size_t kMaxDepth = 1000;

std::size_t depth(std::string_view text) {
  std::size_t now = 0;
  std::size_t deepest = 0;
  bool is_in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (is_in_string) {
      if (c == '\\') ++i;
      if (c == '"') is_in_string = false;
    } else if (c == '"') {
      is_in_string = true;
    } else if (c == '{' || c == '[') {
      deepest = std::max(deepest, ++now);
    } else if ((c == '}' || c == ']') && now > 0) {
      --now;
    }
  }
  return deepest;
}

[[noreturn]] void refuse(const std::string& label, const std::string& problem) {
  throw Error(ErrorCode::invalid_file, label + " " + problem + "; save the model again with Keras");
}

}  // namespace

Json parse_keras_json(std::string_view text, const std::string& label) {
  if (text.size() > kMaxBytes) {
    refuse(label,
           "has " + std::to_string(text.size()) + " bytes where at most " + std::to_string(kMaxBytes) + " are read");
  }
  if (depth(text) > kMaxDepth) refuse(label, "is nested deeper than " + std::to_string(kMaxDepth) + " levels");
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) refuse(label, "is no JSON");
  return json;
}

const Json& member(const Json& object, std::string_view key) {
  static const Json nothing;
  if (!object.is_object()) return nothing;
  const auto found = object.find(key);
  return found == object.end() ? nothing : *found;
}

std::string text_member(const Json& object, std::string_view key) {
  const Json& value = member(object, key);
  return value.is_string() ? value.get<std::string>() : std::string();
}

bool flag_member(const Json& object, std::string_view key, bool otherwise) {
  const Json& value = member(object, key);
  return value.is_boolean() ? value.get<bool>() : otherwise;
}

}  // namespace holdfast::format
