#pragma once

// Every layer computes what Keras does, output and gradients, in random small cases. scripts/tests/reference_cases.py
// writes the cases and says what is in them; run it with the name of a layer that is added. It can write more cases
// elsewhere, and HOLDFAST_REFERENCE_CASES names their folder.

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "compute/backend.h"
#include "holdfast/nn/model.h"

namespace holdfast {

// The cases of a kind of layer; fails the test if there are none.
nlohmann::json reference_cases_of(std::string_view kind);

// One layer, each of whose inputs is shifted by a parameter: the gradient of the shift is that of the input. Integers
// are not shifted.
class ReferenceCase {
 public:
  // The text must outlive the case.
  ReferenceCase(const std::string& kind, const nlohmann::json& text);

  // Fails the test if a number that the back end computes is not that of Keras. The rounding of a device's own
  // functions may be `roundings` times that of the host's.
  void run(std::unique_ptr<compute::Backend> backend, double roundings = 1) const;

 private:
  const nlohmann::json& text_;
  const Model model_;
};

}  // namespace holdfast
