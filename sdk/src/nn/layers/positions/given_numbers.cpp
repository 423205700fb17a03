#include "nn/layers/positions/given_numbers.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "holdfast/base/error.h"

namespace holdfast {

// More would be a file that describes a model no memory holds.
constexpr std::int64_t kMostNumbers = std::int64_t{1} << 28;

Value given_numbers(LayerBuilder& builder, const std::string& name, std::int64_t rows, std::int64_t columns,
                    const std::function<double(double row, std::int64_t column)>& value) {
  if (rows > kMostNumbers / columns) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("its {} [{}, {}] has more than 2^28 elements; use shorter sequences", name, rows, columns));
  }
  std::vector<float> numbers;
  numbers.reserve(static_cast<std::size_t>(rows * columns));
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      numbers.push_back(static_cast<float>(value(static_cast<double>(row), column)));
    }
  }
  return builder.buffer(name, {rows, columns}, Initializer::values(std::move(numbers)));
}

}  // namespace holdfast
