#pragma once

// The product of two inputs along an axis of each, sample by sample (keras.layers.Dot): [..., k] and [k, ...] become
// all products of the axes that remain, those of the first input first. Two vectors give [1].
//
//   const Value likeness = Dot{-1, {.normalize = true}}(left, right);   // cosine of two vectors
//   const Value scores = Dot{{1, 1}}(queries, keys);                    // [m, k] and [n, k] give [m, n]
//
// It is made of functions of values, and takes memory for all products of elements before they are added: m * n * k
// floats for each sample.

#include <cstdint>
#include <memory>
#include <string>

#include "holdfast/nn/layer.h"

namespace holdfast {

class ConfigReader;

// The axes of the first and of the second input. Axis 0 is the first axis of a sample; a negative axis counts from the
// last one. (Keras counts the axis of samples too, so that its axis 1 is axis 0 here.) A single number stands for both.
struct DotAxes {
  // The same axis of both.
  DotAxes(std::int64_t both) : DotAxes(both, both) {}  // NOLINT(google-explicit-constructor): Dot{-1}
  // An axis of each.
  DotAxes(std::int64_t of_first, std::int64_t of_second) : first(of_first), second(of_second) {}

  std::int64_t first;   // of the first input
  std::int64_t second;  // of the second input
};

struct DotOptions {
  // Divide each input by its Euclidean length along its axis, or by 1e-7 where it is shorter.
  bool normalize = false;
  std::string name = {};
};

class Dot final : public LayerOf<Dot> {
 public:
  // Throws Error{invalid_argument} for axes that no input can have.
  explicit Dot(const DotAxes& axes, const DotOptions& options = {});
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  // What Layer promises.
  std::string_view kind() const override { return "Dot"; }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  DotAxes axes_;
  bool normalizes_;
};

}  // namespace holdfast
