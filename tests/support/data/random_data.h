#pragma once

// Arrays for tests that need many of them: the same for the same arguments. The source is compiled with optimisation,
// since the test programs are not, and drawing took a third of the time of some.

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

namespace holdfast {

// Bytes of which each value is equally likely.
std::vector<std::byte> random_bytes(std::size_t count, unsigned seed);

// The same, from the state of `random`.
std::vector<std::byte> random_bytes(std::size_t count, std::mt19937& random);

// Byte values that are as likely as `weights` says: weights[i] for lowest + i.
std::vector<std::byte> weighted_bytes(std::size_t count, std::span<const double> weights, unsigned lowest,
                                      unsigned seed);

// Values lowest + stride * k, with k from a geometric distribution of success probability `probability`; modulo 256.
std::vector<std::byte> geometric_bytes(std::size_t count, double probability, int lowest, int stride,
                                       std::mt19937& random);

// Numbers like weights: normal, with mean 0.
std::vector<float> normal_floats(std::size_t count, double standard_deviation, unsigned seed);

}  // namespace holdfast
