#pragma once

// The shape and type of one sample, with which a Sequential begins. Input{28, 28, 1} is [height, width, channels],
// and Input{8000} is [features]. The number of samples is not part of it. Ids for an Embedding are integers:
//
//   Sequential model{Input({7}, {.dtype = DType::i32}), Embedding{100, 16}, Flatten{}, Dense{1}};

#include <initializer_list>

#include "holdfast/base/dtype.h"
#include "holdfast/core/shape.h"

namespace holdfast {

// How the numbers of a sample are stored in the data.
struct InputOptions {
  // f32, bf16, i32, i64, u8, u16 or boolean: the type that the data has. Integers are for layers that
  // take them, as an Embedding does, or become floats in a Rescaling, as the bytes of a picture do. See ValueOptions.
  DType dtype = DType::f32;
};

// Converts a list of extents into a Shape and checks it.
class Input {
 public:
  // All throw Error{invalid_argument} without an extent, or for one that is not in [1, Layer::kMaximumExtent], or for
  // a type that samples cannot have.
  Input(std::initializer_list<std::int64_t> extents);
  explicit Input(Shape shape) : Input(std::move(shape), InputOptions{}) {}
  Input(Shape shape, const InputOptions& options);

  const Shape& shape() const { return shape_; }  // of one sample
  DType dtype() const { return dtype_; }         // of its elements

 private:
  Shape shape_;
  DType dtype_;
};

}  // namespace holdfast
