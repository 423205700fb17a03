#pragma once

// Sentences about targets that no sample can have, said alike by the losses of the host and those of devices. They are
// the ends of errors that begin with the name of a sample (core/sample_error.h).

#include <fmt/format.h>

#include <cstdint>
#include <string>

namespace holdfast::compute {

inline std::string problem_of_class_label(float label, std::int64_t classes) {
  if (classes == 1) return fmt::format("has the class label {}; the model has 1 class, so all labels are 0", label);
  return fmt::format("has the class label {}; the model has {} classes, so labels are the whole numbers 0 to {}", label,
                     classes, classes - 1);
}

inline std::string problem_of_probability(float target) {
  return fmt::format("has the target {}; binary_crossentropy takes probabilities, so targets are numbers from 0 to 1",
                     target);
}

}  // namespace holdfast::compute
