// Names are chosen as in Keras, so that weights of a model have the same names in both. They become parts of names in
// files, and may come from files. So few characters are allowed.

#include "nn/graph/layer_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "holdfast/base/error.h"
#include "holdfast/base/shown_text.h"

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
  // std::isalnum() would depend on the locale of the application.
  return is_upper(character) || is_lower(character) || (character >= '0' && character <= '9') || character == '_' ||
         character == '-' || character == '.';
}

constexpr std::size_t kMaximumLength = 100;

static bool is_layer_name(std::string_view name) {
  // A name that begins with a dot could be read as a path, such as "..".
  return !name.empty() && name.size() <= kMaximumLength && !name.starts_with('.') &&
         std::all_of(name.begin(), name.end(), is_name_character);
}

void check_layer_name(std::string_view name) {
  if (is_layer_name(name)) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("a name of a layer, a model or an output has at most 100 letters, digits and characters of "
                          "\"_-.\" and does not begin with a dot, unlike {}",
                          quoted_text(name, kMaximumLength)));
}

void check_layer_path(std::string_view path) {
  // An empty part, as in "a//b", is not a name either.
  std::size_t begin = 0;
  for (std::size_t slash = path.find('/'); slash != std::string_view::npos; slash = path.find('/', begin)) {
    check_layer_name(path.substr(begin, slash - begin));
    begin = slash + 1;
  }
  check_layer_name(path.substr(begin));
}

void check_weight_name(std::string_view name) {
  std::size_t begin = 0;
  bool is_name = true;
  while (is_name) {
    const std::size_t slash = name.find('/', begin);
    is_name = is_layer_name(name.substr(begin, slash - begin));
    if (slash == std::string_view::npos) break;
    begin = slash + 1;
  }
  if (is_name) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("its weight is called {}, which no savepoint can hold; a name has at most 100 letters, "
                          "digits and characters of \"_-.\", and does not begin with a dot",
                          quoted_text(name, kMaximumLength)));
}

void check_weight_paths(const std::vector<std::string>& names) {
  const std::set<std::string_view> all(names.begin(), names.end());
  for (const std::string& name : names) {
    for (std::size_t slash = name.find('/'); slash != std::string::npos; slash = name.find('/', slash + 1)) {
      const std::string_view around = std::string_view(name).substr(0, slash);
      if (!all.contains(around)) continue;
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("the weight \"{}\" would lie inside the weight \"{}\", which no savepoint can hold; give "
                              "one of the layers or models another name",
                              name, around));
    }
  }
}

std::vector<std::string> name_layers(const std::vector<LayerName>& layers) {
  // All names that were given are taken first. So a name that is chosen never takes one of them away.
  std::set<std::string> taken;
  for (const LayerName& layer : layers) {
    if (layer.given.empty() || taken.insert(layer.given).second) continue;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("two layers of the model are named \"{}\"; give one another name, or none", layer.given));
  }
  std::vector<std::string> names;
  std::map<std::string_view, int> counts;
  for (const LayerName& layer : layers) {
    std::string name = layer.given;
    while (name.empty() || (layer.given.empty() && !taken.insert(name).second)) {
      // Each kind counts for itself. The loop goes on where the name is taken.
      const int number = counts[layer.kind]++;
      name = snake_case(layer.kind) + (number == 0 ? "" : "_" + std::to_string(number));
    }
    names.push_back(std::move(name));
  }
  return names;
}

bool is_automatic_name(std::string_view name, std::string_view kind) {
  const std::string stem = snake_case(kind);
  if (!name.starts_with(stem)) return false;
  const std::string_view rest = name.substr(stem.size());
  const auto is_digit = [](char character) { return character >= '0' && character <= '9'; };
  return rest.empty() || (rest.size() > 1 && rest[0] == '_' && std::ranges::all_of(rest.substr(1), is_digit));
}

// The fewest characters to insert, delete or replace (Levenshtein, 1965).
static std::size_t edit_distance(std::string_view a, std::string_view b) {
  // Each cell of the table needs its neighbours alone, so one row of it is enough.
  std::vector<std::size_t> row(b.size() + 1);  // distances of the first characters of `a` to all beginnings of `b`
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      // One row of the table is enough: the entry above and to the left is kept in `diagonal`.
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = std::exchange(row[j + 1], std::min({replaced, row[j] + 1, row[j + 1] + 1}));
    }
  }
  return row.back();
}

std::vector<std::string> close_names(std::string_view wanted, const std::vector<std::string>& names) {
  constexpr std::size_t kMostNames = 3;
  constexpr std::size_t kMostCharacters = 200;  // bounds the time for a text that is far from any name
  wanted = wanted.substr(0, kMostCharacters);
  const std::string text(wanted);
  std::vector<std::pair<std::size_t, std::string>> found;
  for (const std::string& name : names) {
    // Layers of nested models are often asked for by a part of their path.
    const bool is_part = !text.empty() && (name.starts_with(text + "/") || name.ends_with("/" + text));
    const std::size_t distance = is_part ? 0 : edit_distance(wanted, name);
    // A quarter of the characters may differ. A name that is further away would not help.
    if (distance <= 1 + wanted.size() / 4) found.emplace_back(distance, name);
  }
  // Equally close names stay in the order of the model.
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> close;
  for (std::size_t i = 0; i < std::min(found.size(), kMostNames); ++i) close.push_back(found[i].second);
  return close;
}

}  // namespace holdfast
