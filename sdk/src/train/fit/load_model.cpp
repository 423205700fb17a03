// Kept apart from snapshot.cpp, so that programs that only handle savepoints need not link the layers.
// docs/decisions/holdfast-run.md

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "holdfast/base/error.h"
#include "holdfast/base/file_system.h"
#include "holdfast/train/trainer.h"
#include "train/state/snapshot.h"

namespace holdfast {
namespace {

// Fills an arena from the arrays called prefix + entry name.
std::vector<float> collect(const Snapshot& snapshot, const ArenaLayout& layout, const std::string& prefix,
                           const std::string& origin) {
  std::vector<float> arena(layout.float_count());
  for (std::size_t entry = 0; entry < layout.entries().size(); ++entry) {
    // Arrays are found by name and not by position, since a savepoint also has those of the optimizer.
    const std::string name = prefix + layout.entries()[entry].name;
    const auto array = std::find_if(snapshot.arrays.begin(), snapshot.arrays.end(),
                                    [&](const SnapshotArray& candidate) { return candidate.name == name; });
    if (array == snapshot.arrays.end() || array->shape != layout.entries()[entry].shape) {
      throw Error(
          ErrorCode::invalid_file,
          fmt::format("{} does not hold the array {} as its own model needs it; use another savepoint", origin, name));
    }
    std::copy(array->values.begin(), array->values.end(), layout.view(std::span<float>(arena), entry).begin());
  }
  return arena;
}

}  // namespace

Model load_model(const std::string& path, Weights weights) {
  Snapshot snapshot = read_model(posix_file_system(), path);
  if (weights == Weights::averaged) use_averages(snapshot, path);
  const std::string text = present_graph(snapshot.state);
  const nlohmann::json graph = nlohmann::json::parse(text);
  const nlohmann::json format = graph.is_object() ? graph.value("format", nlohmann::json()) : nlohmann::json();
  // The graph of an application's own Trainable may be any JSON, so it may have no "format" at all.
  if (format != "holdfast.sequential" && format != "holdfast.model") {
    throw Error(
        ErrorCode::unsupported,
        fmt::format("{} holds an application's own model, not one of layers: load it through a Trainer of that model",
                    path));
  }
  Model model = Model::from_graph(text);
  model.set_weights(collect(snapshot, model.parameters(), "model/", path),
                    collect(snapshot, model.buffers(), "model/", path));
  return model;
}

}  // namespace holdfast
