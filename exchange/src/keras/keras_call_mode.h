#pragma once

// The argument `training` of Keras's calls, which Holdfast's calls do not have.

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "keras_layers/model_graph.h"

namespace holdfast::format {

// While a call is read that has the argument, its layers take over what they can. Notes say what became of it.
class KerasCallMode {
 public:
  // Returns false within a call that has the argument: as in Keras, the outermost one decides for all layers in it.
  bool begin(std::optional<bool> training);
  // Freezes a BatchNormalization that runs as in inference.
  void apply_to(ModelGraphLayer& layer);
  // Ends what begin() began, and says what became of the argument of the layer or nested model `path`.
  std::vector<std::string> end(const std::string& path);

 private:
  std::optional<bool> training_;
  std::set<std::string> frozen_;
  std::set<std::string> others_;  // on which the argument acts in Keras alone
};

}  // namespace holdfast::format
