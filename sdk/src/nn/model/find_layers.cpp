#include "nn/model/find_layers.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/name_pattern.h"
#include "holdfast/base/error.h"
#include "holdfast/base/shown_text.h"
#include "nn/graph/layer_names.h"

namespace holdfast {

void refuse_layer(const ModelDescription& model, std::string_view wanted) {
  // The name may come from outside, and a model may have a thousand layers. The sentence must stay short in both cases.
  constexpr std::size_t kMostListed = 10;
  std::vector<std::string> names;
  for (const ModelLayer& layer : model.layers) names.push_back(layer.name);
  std::vector<std::string> close = close_names(wanted, names);
  const bool is_close = !close.empty();
  if (names.empty()) throw Error(ErrorCode::not_found, "the model has no layers, so none has an output to ask for");
  if (!is_close) close.assign(names.begin(), names.begin() + std::min(names.size(), kMostListed));
  throw Error(ErrorCode::not_found,
              fmt::format("the model has no layer named {}; {} \"{}\"{}", quoted_text(wanted),
                          is_close ? "names close to it are" : "its layers are", fmt::join(close, "\", \""),
                          is_close || names.size() <= kMostListed ? "" : ", and more, which summary() lists"));
}

std::vector<bool> matching_layers(const ModelDescription& model, std::string_view pattern) {
  std::vector<bool> matches;
  for (const ModelLayer& layer : model.layers) matches.push_back(matches_pattern(pattern, layer.name));
  // A pattern that matches nothing is a mistake in a name.
  if (std::find(matches.begin(), matches.end(), true) == matches.end()) refuse_layer(model, pattern);
  return matches;
}

}  // namespace holdfast
