#include "nn/layers/layer_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "holdfast/base/error.h"

namespace holdfast {

static bool is_upper(char character) {
  return character >= 'A' && character <= 'Z';
}
static bool is_lower(char character) {
  return character >= 'a' && character <= 'z';
}

// A word begins at a capital that a small letter follows: "MaxPooling2D" is max_pooling2d.
static std::string snake_case(std::string_view kind) {
  std::string text;
  for (std::size_t i = 0; i < kind.size(); ++i) {
    const bool begins_word = i > 0 && is_upper(kind[i]) && i + 1 < kind.size() && is_lower(kind[i + 1]);
    if (begins_word) text += '_';
    text += is_upper(kind[i]) ? static_cast<char>(kind[i] - 'A' + 'a') : kind[i];
  }
  return text;
}

static bool is_name_character(char character) {
  return is_upper(character) || is_lower(character) || (character >= '0' && character <= '9') || character == '_' ||
         character == '-' || character == '.';
}

void check_layer_name(std::string_view name) {
  constexpr std::size_t kMaximumLength = 100;
  const bool is_name = !name.empty() && name.size() <= kMaximumLength && !name.starts_with('.') &&
                       std::all_of(name.begin(), name.end(), is_name_character);
  if (is_name) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("a layer's name has at most 100 letters, digits and characters of \"_-.\" and does not begin "
                          "with a dot, unlike \"{}\"",
                          name.substr(0, kMaximumLength)));
}

void check_layer_path(std::string_view path) {
  std::size_t begin = 0;
  for (std::size_t slash = path.find('/'); slash != std::string_view::npos; slash = path.find('/', begin)) {
    check_layer_name(path.substr(begin, slash - begin));
    begin = slash + 1;
  }
  check_layer_name(path.substr(begin));
}

std::vector<std::string> name_layers(const std::vector<LayerName>& layers) {
  std::set<std::string> taken;
  for (const LayerName& layer : layers) {
    if (layer.given.empty() || taken.insert(layer.given).second) continue;
    throw Error(ErrorCode::invalid_argument, "two layers of the model are named \"" + layer.given + "\"");
  }
  std::vector<std::string> names;
  std::map<std::string_view, int> counts;
  for (const LayerName& layer : layers) {
    std::string name = layer.given;
    while (name.empty() || (layer.given.empty() && !taken.insert(name).second)) {
      const int number = counts[layer.kind]++;
      name = snake_case(layer.kind) + (number == 0 ? "" : "_" + std::to_string(number));
    }
    names.push_back(std::move(name));
  }
  return names;
}

}  // namespace holdfast
