#pragma once

// What a layer is applied to while a model is described. A Value has the shape of one sample and a type, and no
// numbers. The values of a description form a graph:
//
//   const Value x = input({28, 28, 1});
//   const Value y = Dense{10}(Flatten{}(x));
//   Model model(x, y);
//
// Values are cheap to copy and keep the graph alive that made them. They never change, and any thread may use them. The
// graph numbers weights and random draws, from the outputs to the inputs, the first input of a layer first. So it is
// part of what the bits of training depend on.
//
// A value never mixes samples, so that a batch may be cut into shards anywhere.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "holdfast/base/dtype.h"
#include "holdfast/core/shape.h"

namespace holdfast {

struct ValueNode;

// What is known of a value before there are numbers.
struct ValueSpec {
  Shape shape;               // of one sample; of the whole array if it has no samples
  DType dtype = DType::f32;  // of its elements
  // False for parameters, buffers and constants: one array, whatever the number of samples.
  bool has_samples = true;

  friend bool operator==(const ValueSpec&, const ValueSpec&) = default;
};

class Value {
 public:
  // For Holdfast's own use: output `output` of a node.
  Value(std::shared_ptr<const ValueNode> node, std::size_t output) : node_(std::move(node)), output_(output) {}

  const ValueSpec& spec() const;  // valid as long as the value
  // The shape of one sample; axis 0 is the first axis of a sample.
  const Shape& shape() const { return spec().shape; }
  DType dtype() const { return spec().dtype; }             // of its elements
  bool has_samples() const { return spec().has_samples; }  // see ValueSpec

  // For Holdfast's own use.
  const std::shared_ptr<const ValueNode>& node() const { return node_; }
  std::size_t output() const { return output_; }  // the number of the output

 private:
  std::shared_ptr<const ValueNode> node_;
  std::size_t output_;
};

struct ValueOptions {
  // f32, bf16, i32, i64, u8, u16 or boolean: the type that the data has. bf16 is computed with as f32. Integers and
  // booleans are i32 in the model: they can be cast to f32, gathered with, and moved, but not computed with.
  DType dtype = DType::f32;
  std::string name = {};  // in files and error messages; empty: "input", "input_1", ...
};

// An input of a model: the shape and type of one sample. Throws Error{invalid_argument} without an extent, or for one
// that is not in [1, Layer::kMaximumExtent].
Value input(const Shape& shape, const ValueOptions& options = {});

}  // namespace holdfast
