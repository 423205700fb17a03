#include "support/data/random_data.h"

#include <algorithm>

namespace holdfast {

std::vector<std::byte> random_bytes(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  return random_bytes(count, random);
}

std::vector<std::byte> random_bytes(std::size_t count, std::mt19937& random) {
  std::vector<std::byte> bytes(count);
  std::generate(bytes.begin(), bytes.end(), [&] { return static_cast<std::byte>(random()); });
  return bytes;
}

std::vector<std::byte> weighted_bytes(std::size_t count, std::span<const double> weights, unsigned lowest,
                                      unsigned seed) {
  std::mt19937 random(seed);
  std::discrete_distribution<unsigned> draw(weights.begin(), weights.end());
  std::vector<std::byte> bytes(count);
  std::generate(bytes.begin(), bytes.end(), [&] { return static_cast<std::byte>(lowest + draw(random)); });
  return bytes;
}

std::vector<std::byte> geometric_bytes(std::size_t count, double probability, int lowest, int stride,
                                       std::mt19937& random) {
  std::geometric_distribution<int> draw(probability);
  std::vector<std::byte> bytes(count);
  std::generate(bytes.begin(), bytes.end(), [&] { return static_cast<std::byte>(lowest + stride * draw(random)); });
  return bytes;
}

std::vector<float> normal_floats(std::size_t count, double standard_deviation, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> draw(0.0, standard_deviation);
  std::vector<float> values(count);
  std::generate(values.begin(), values.end(), [&] { return static_cast<float>(draw(random)); });
  return values;
}

}  // namespace holdfast
