#pragma once

// Whether lower or higher values of a metric are better, from what Holdfast knows of kinds and names. The directions
// are those of Keras 3 (Metric._direction).

#include <optional>
#include <string>

#include "holdfast/base/best.h"

namespace holdfast {

// By the member "kind" of a metric's configuration; empty for kinds of the application, and for counts.
std::optional<Best> direction_of_configuration(const std::string& configuration);

// By a name in the logs, with or without "val_": the kind that the name is of, or ends with after an underscore.
std::optional<Best> direction_of_name(std::string name);

}  // namespace holdfast
