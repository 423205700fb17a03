#include "data/sources/array_description.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace holdfast {

std::string content_of_arrays(std::int64_t size, const std::vector<std::string>& digests) {
  return fmt::format("arrays {} {}", size, fmt::join(digests, " "));
}

nlohmann::ordered_json description_of_arrays(const std::vector<std::string>& digests) {
  return {{"kind", "arrays"}, {"digests", digests}};
}

}  // namespace holdfast
