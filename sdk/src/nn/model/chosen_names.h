#pragma once

// Which names of a model its application has chosen, and which the model: "input_1", "dense".

#include <vector>

#include "holdfast/nn/model.h"

namespace holdfast {

// For each input or output: false if its name is one that a model would choose.
std::vector<bool> chosen_input_names(const Model& model);
std::vector<bool> chosen_output_names(const Model& model);

}  // namespace holdfast
