#include "nn/layer_names.h"

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

std::vector<std::string> name_layers(const std::vector<std::shared_ptr<const Layer>>& layers) {
  std::set<std::string> taken;
  for (const auto& layer : layers) {
    if (layer->name().empty() || taken.insert(layer->name()).second) continue;
    throw Error(ErrorCode::invalid_argument, "two layers of the model are named \"" + layer->name() + "\"");
  }
  std::vector<std::string> names;
  std::map<std::string_view, int> counts;
  for (const auto& layer : layers) {
    std::string name = layer->name();
    while (name.empty() || (layer->name().empty() && !taken.insert(name).second)) {
      const int number = counts[layer->kind()]++;
      name = snake_case(layer->kind()) + (number == 0 ? "" : "_" + std::to_string(number));
    }
    names.push_back(std::move(name));
  }
  return names;
}

}  // namespace holdfast
