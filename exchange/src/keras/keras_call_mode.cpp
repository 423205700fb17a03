#include "keras/keras_call_mode.h"

#include <fmt/format.h>

#include <utility>

#include "bytes/byte_source.h"

namespace holdfast::format {
namespace {

bool is_random_kind(const std::string& kind) {
  return kind == "GaussianNoise" || kind.ends_with("Dropout") || kind.starts_with("SpatialDropout");
}

// A model of many layers has one note, which names a few of them.
std::string shown_layers(const std::set<std::string>& layers) {
  constexpr std::size_t kMost = 3;
  std::string names;
  std::size_t count = 0;
  for (const std::string& layer : layers) {
    if (count++ == kMost) return fmt::format("{} and {} more", names, layers.size() - kMost);
    names += fmt::format("{}{}", names.empty() ? "" : ", ", quoted_text(layer));
  }
  return names;
}

}  // namespace

bool KerasCallMode::begin(std::optional<bool> training) {
  if (training_ || !training) return false;
  training_ = training;
  return true;
}

void KerasCallMode::apply_to(ModelGraphLayer& layer) {
  if (!training_) return;
  const bool is_normalization = layer.kind == "BatchNormalization";
  // Keras writes training=False for each call of such a layer, and draws in training all the same, as Holdfast does.
  if (*training_ && (is_normalization || is_random_kind(layer.kind))) others_.insert(layer.name);
  // A layer that Keras does not train needs no note.
  if (!is_normalization || *training_ || layer.is_frozen) return;
  layer.is_frozen = true;
  frozen_.insert(layer.name);
}

std::vector<std::string> KerasCallMode::end(const std::string& path) {
  std::vector<std::string> notes;
  const auto add = [&](const std::set<std::string>& layers, const char* sentence) {
    if (layers.empty()) return;
    const bool is_itself = layers.size() == 1 && layers.contains(path);
    notes.push_back(fmt::format("layer {} is called with training={}{}: {}", quoted_text(path),
                                *training_ ? "True" : "False",
                                is_itself ? "" : fmt::format(", which acts on {}", shown_layers(layers)), sentence));
  };
  add(frozen_,
      "Holdfast freezes it, so that it computes as in inference while the model trains; its gamma and beta are not "
      "trained either, unless you unfreeze it");
  add(others_,
      "Holdfast has no such argument, and predicts as with training=False; predict with Keras if predictions need it");
  *this = KerasCallMode();
  return notes;
}

}  // namespace holdfast::format
