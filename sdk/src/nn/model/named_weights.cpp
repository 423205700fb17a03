// A frozen layer has its parameters in the arena of buffers, and another model may have the same layers in another
// order. So weights move by name alone, through a map, and never by their places. docs/decisions/buffers.md

#include "nn/model/named_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "holdfast/base/error.h"
#include "nn/model/description.h"

namespace holdfast {

namespace {

// It refers to the model and its arenas, so that listing weights copies none.
struct NamedWeight {
  const Shape* shape = nullptr;
  std::span<const float> values;
};
using NamedWeights = std::map<std::string, NamedWeight>;

NamedWeights list_weights(const Model& model, std::span<const float> parameters, std::span<const float> buffers) {
  NamedWeights weights;
  const auto add = [&](const ArenaLayout& layout, std::span<const float> arena) {
    for (std::size_t entry = 0; entry < layout.entries().size(); ++entry) {
      weights[layout.entries()[entry].name] = {&layout.entries()[entry].shape, layout.view(arena, entry)};
    }
  };
  add(model.parameters(), parameters);
  add(model.buffers(), buffers);
  return weights;
}

// Calls `fill` with each entry of the layout and its values.
void for_each_entry(const ArenaLayout& layout, std::span<float> arena,
                    const std::function<void(const ArenaEntry& entry, std::span<float> values)>& fill) {
  for (std::size_t entry = 0; entry < layout.entries().size(); ++entry) {
    fill(layout.entries()[entry], layout.view(arena, entry));
  }
}

}  // namespace

ModelWeights::Values weights_by_name(const Model& to, const Model& from, std::span<const float> parameters,
                                     std::span<const float> buffers) {
  const NamedWeights named = list_weights(from, parameters, buffers);
  ModelWeights::Values values{std::vector<float>(to.parameters().float_count()),
                              std::vector<float>(to.buffers().float_count())};
  const auto fill = [&](const ArenaEntry& entry, std::span<float> place) {
    const auto found = named.find(entry.name);
    // The caller has compared the models, so a difference is an error of ours.
    HOLDFAST_ASSERT(found != named.end() && found->second.values.size() == place.size());
    std::copy(found->second.values.begin(), found->second.values.end(), place.begin());
  };
  for_each_entry(to.parameters(), values.parameters, fill);
  for_each_entry(to.buffers(), values.buffers, fill);
  return values;
}

void copy_weights(const Model& from, Model& to) {
  if (!from.has_weights()) return;
  ModelWeights::Values values = weights_by_name(to, from, from.parameter_values(), from.buffer_values());
  to.set_weights(std::move(values.parameters), std::move(values.buffers));
}

void Model::take_weights(const Model& part, const std::string& name, std::uint64_t seed) {
  const std::string prefix = name.empty() ? "" : name + "/";
  const NamedWeights given = list_weights(part, part.parameter_values(), part.buffer_values());
  std::vector<float> parameters(this->parameters().float_count());
  std::vector<float> buffers(this->buffers().float_count());
  // Arrays that the part does not have keep their values, or get initial ones if the model has none yet.
  if (has_weights()) {
    std::ranges::copy(parameter_values(), parameters.begin());
    std::ranges::copy(buffer_values(), buffers.begin());
  } else {
    initialize(seed, parameters, buffers);
  }
  // All are counted, since an array that finds no place would be lost without a word.
  std::size_t taken = 0;
  const auto fill = [&](const ArenaEntry& entry, std::span<float> place) {
    if (!entry.name.starts_with(prefix)) return;
    const auto found = given.find(entry.name.substr(prefix.size()));
    if (found == given.end() || *found->second.shape != entry.shape) return;
    std::ranges::copy(found->second.values, place.begin());
    ++taken;
  };
  for_each_entry(this->parameters(), parameters, fill);
  for_each_entry(this->buffers(), buffers, fill);
  if (taken != given.size()) {
    // Looked for only now, since only the message needs it: the first array that found no place.
    const auto has = [&](const std::string& wanted, const Shape& shape) {
      const auto is_it = [&](const ArenaEntry& entry) { return entry.name == wanted && entry.shape == shape; };
      return std::ranges::any_of(this->parameters().entries(), is_it) ||
             std::ranges::any_of(this->buffers().entries(), is_it);
    };
    const auto missing = std::ranges::find_if(
        given, [&](const auto& weight) { return !has(prefix + weight.first, *weight.second.shape); });
    throw Error(ErrorCode::incompatible,
                fmt::format("take_weights() found no array \"{}{}\" of shape {} in the model; give it the name with "
                            "which the other model was called",
                            prefix, missing->first, missing->second.shape->to_string()));
  }
  // Only now, so that an error leaves the model as it was.
  set_weights(std::move(parameters), std::move(buffers));
}

}  // namespace holdfast
