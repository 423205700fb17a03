#include "train/context/array_places.h"

#include <algorithm>

namespace holdfast {

void find_array_places(std::span<const ArraySpec> of_sample, std::span<const ModelArray> of_model,
                       std::vector<std::size_t>& places) {
  places.clear();
  for (const ModelArray& array : of_model) {
    const auto found = std::ranges::find(of_sample, array.name, &ArraySpec::name);
    if (found == of_sample.end()) break;
    places.push_back(static_cast<std::size_t>(found - of_sample.begin()));
  }
  // Names of a model differ, and so do those of a sample. So equal numbers of arrays leave no name over.
  if (places.size() == of_model.size() && of_sample.size() == of_model.size()) return;
  places.resize(of_model.size());
  for (std::size_t place = 0; place < places.size(); ++place) places[place] = place;
}

}  // namespace holdfast
