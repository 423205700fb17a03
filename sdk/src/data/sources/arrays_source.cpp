#include "data/sources/arrays_source.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

namespace holdfast {

void ArraysSource::load(std::uint64_t, std::int64_t, std::int64_t position, Sample destination) const {
  read_inputs(position, destination.features);
  read_targets(position, destination.targets);
  // At each load, as after a map(), so that the message names the sample.
  check_integers(layouts(), destination, position);
}

// Shapes and types are left out here: RowLayout describes them, and this text only tells equal contents.
std::string ArraysSource::content() const {
  return fmt::format("arrays {} {}", size(), fmt::join(digests_, " "));
}

void ArraysSource::describe(nlohmann::ordered_json& stages) const {
  stages.push_back({{"kind", "arrays"}, {"digests", digests_}});
}

}  // namespace holdfast
