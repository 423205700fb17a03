#include "holdfast/data/adapt.h"

#include <vector>

namespace holdfast {

Normalization adapt(const Normalization& layer, const Dataset& data, std::uint64_t seed) {
  NormalizationStatistics statistics(layer, data.feature_shape());
  std::vector<float> features(static_cast<std::size_t>(data.feature_shape().element_count()));
  std::vector<float> targets(data.target_layout().words());
  // In the order of the data, on one thread: sums in another order would have other bits. Padding of batches holds
  // copies, which would count the last sample several times.
  for (std::int64_t position = 0; position < data.size() - data.padding(); ++position) {
    // Epoch 0 stands for all: a random map() gives other numbers in each epoch.
    data.load(seed, 0, position, {.features = features, .targets = targets});
    statistics.add(features);
  }
  return statistics.adapted();
}

}  // namespace holdfast
