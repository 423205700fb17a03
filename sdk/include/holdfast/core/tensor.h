#pragma once

// An array in the memory of the host, row-major, that owns its elements. They are f32 unless another type
// is asked for. Applications pass tensors to Holdfast and get them back. Copying a tensor copies its
// elements, and moving it leaves them where they are. Several threads may read one tensor; to write to it
// is for one thread at a time.
//
//   Tensor features(Shape{2, 3}, {1, 2, 3, 4, 5, 6});   // two samples of three numbers
//   features.sample(1)[0] = 7;
//   Tensor ids(Shape{2}, std::vector<std::int32_t>{3, 8});
//   ids.elements<std::int32_t>()[0] == 3;

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "holdfast/base/dtype.h"
#include "holdfast/core/row_layout.h"
#include "holdfast/core/shape.h"

namespace holdfast {

// An array of any number of axes. Large ones ask the system for huge pages, since samples are read in random order.
class Tensor {
 public:
  // An array without elements.
  Tensor() : Tensor(Shape{0}) {}
  // All elements are zero.
  explicit Tensor(Shape shape);
  // Takes over the values, without a copy if they are moved here. Throws Error{invalid_argument} unless `values` has
  // one value for each element of the shape.
  Tensor(Shape shape, std::vector<float> values);
  // Elements of another type, all zero. Throws Error{invalid_argument} for a type that samples cannot have
  // (is_sample_type()).
  Tensor(Shape shape, DType dtype);
  // Copies elements of another type than f32. Throws like the constructor from floats.
  template <ElementType T>
  requires(!std::same_as<T, float>) Tensor(Shape shape, const std::vector<T>& values)
      : Tensor(std::move(shape), dtype_of<T>()) {
    require_count(values.size());
    std::size_t index = 0;
    for (T& element : elements<T>()) element = values[index++];
  }

  // The first axis counts samples wherever a tensor holds data for a model.
  const Shape& shape() const { return shape_; }
  DType dtype() const { return dtype_; }  // of its elements
  // All elements of an f32 tensor in row-major order. A view is valid as long as the tensor. A temporary
  // gives its elements away instead, so this loop is safe: for (float value :
  // model.predict(features).values()). All three throw Error{invalid_argument} if the type is not f32.
  std::span<float> values() & { return checked_values(); }
  std::span<const float> values() const& { return const_cast<Tensor&>(*this).checked_values(); }
  std::vector<float> values() && { return std::move(checked_values()); }
  // All elements of any type. Throws Error{invalid_argument} if T is not the tensor's type.
  template <ElementType T>
  std::span<T> elements() & {
    const std::span<std::byte> found = bytes_of(dtype_of<T>());
    return {reinterpret_cast<T*>(found.data()), found.size() / sizeof(T)};
  }
  template <ElementType T>
  std::span<const T> elements() const& {
    return const_cast<Tensor&>(*this).elements<T>();
  }
  // The same as bytes, whatever the type: for bf16, which has no type in C++, this is the only way to the elements.
  // Valid as long as the tensor.
  std::span<const std::byte> bytes() const&;
  std::span<std::byte> bytes() &;

  // The elements of one entry along the first axis of an f32 tensor, as a view or, of a temporary, as a copy. Asserts
  // that the entry exists. Throws Error{invalid_argument} if the type is not f32.
  std::span<float> sample(std::int64_t index) &;
  std::span<const float> sample(std::int64_t index) const&;
  std::vector<float> sample(std::int64_t index) &&;

 private:
  std::vector<float>& checked_values();
  std::span<std::byte> bytes_of(DType asked);
  void require_count(std::size_t given) const;

  Shape shape_;
  DType dtype_ = DType::f32;
  std::vector<float> values_;     // of f32
  std::vector<std::byte> bytes_;  // of any other type
};

}  // namespace holdfast
