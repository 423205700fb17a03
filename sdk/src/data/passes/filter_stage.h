#pragma once

// The samples that a function of the user keeps.

#include <functional>
#include <memory>
#include <string>

#include "data/stages/chosen_stage.h"

namespace holdfast {

class FilterStage : public ChosenStage {
 public:
  // Calls the function for each sample of epoch 0. Throws as Dataset::filter() does.
  FilterStage(const std::shared_ptr<const Stage>& before, const Dataset::FilterFunction& function,
              FilterOptions options);

  StageKind kind() const override { return StageKind::filter; }
  void describe(nlohmann::ordered_json& stages) const override;

 private:
  std::string name_;
  std::string digest_;  // of the positions
};

}  // namespace holdfast
