// Models compute with integers of 32 bits. A device could only ignore the upper half of a wider one, so ids are checked
// where samples are made and can still be named (docs/decisions/data.md).

#include "data/array_json.h"

#include <fmt/format.h>

#include <limits>

#include "holdfast/base/error.h"

namespace holdfast {
namespace {

void check_row(const RowLayout& layout, std::span<float> words, std::int64_t position) {
  for (std::size_t array = 0; array < layout.arrays().size(); ++array) {
    const ArraySpec& spec = layout.arrays()[array];
    // Every other type of a sample fits into 32 bits.
    if (spec.dtype != DType::i64) continue;
    const std::span<const std::int64_t> elements = ArrayRow(layout, words).elements<std::int64_t>(array);
    for (std::size_t index = 0; index < elements.size(); ++index) {
      const std::int64_t value = elements[index];
      if (value >= std::numeric_limits<std::int32_t>::min() && value <= std::numeric_limits<std::int32_t>::max()) {
        continue;
      }
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("element {} of array {} ({}) of sample {} is {}, but models compute with integers of 32 "
                              "bits; number the ids anew",
                              index, array, spec.to_string(), position, value));
    }
  }
}

}  // namespace

// This text is a part of the data set's description, which a resume compares. Its members keep their order.
nlohmann::ordered_json json_of(const RowLayout& layout) {
  nlohmann::ordered_json arrays = nlohmann::ordered_json::array();
  for (const ArraySpec& array : layout.arrays()) {
    arrays.push_back({{"name", array.name}, {"shape", array.shape.extents()}, {"dtype", name(array.dtype)}});
  }
  return arrays;
}

void check_integers(const SampleLayouts& layouts, Sample sample, std::int64_t position) {
  check_row(layouts.inputs, sample.features, position);
  check_row(layouts.targets, sample.targets, position);
}

}  // namespace holdfast
