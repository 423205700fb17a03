#pragma once

// A change of pictures that Dataset::map() takes. The functions of picture_changes.h make them; an application can fill
// one in itself.

#include <functional>
#include <string>

#include "holdfast/core/random.h"
#include "holdfast/core/row_layout.h"

namespace holdfast {

// See above.
struct PictureChange {
  std::string name;  // with all options, for the description of the data
  // The input that samples have after the change; throws for an input that it cannot change.
  std::function<ArraySpec(const ArraySpec&)> output;
  // Writes the changed input (second argument). Several threads call it at once.
  std::function<void(const ArrayRow&, const ArrayRow&, Random&)> apply;
  bool draws = true;  // whether samples may differ from epoch to epoch; cache() refuses those that do
};

}  // namespace holdfast
