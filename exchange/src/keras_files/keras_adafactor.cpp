// A factor is copied out of an array that repeats it, and repeated again on the way back. What Keras computes from the
// factors is computed here for its files alone: it says nothing that the factors do not.

#include "keras_files/keras_adafactor.h"

#include <cstring>
#include <functional>
#include <numeric>

#include "holdfast/base/error.h"

namespace holdfast::format {
namespace {

using Extents = std::span<const std::uint64_t>;

// The last two axes are those of matrices, as Keras factors them.
struct Matrices {
  std::size_t count = 1;
  std::size_t rows = 1;
  std::size_t columns = 1;
};

bool is_factored(Extents parameter) {
  return parameter.size() >= 2;
}

Matrices matrices_of(Extents parameter) {
  Matrices of;
  const Extents before = parameter.first(parameter.size() - 2);
  of.count = std::accumulate(before.begin(), before.end(), std::size_t{1}, std::multiplies<>());
  of.rows = parameter[parameter.size() - 2];
  of.columns = parameter.back();
  return of;
}

// A factor has a number for each row or each column of a matrix, and the savepoint repeats it for each element.
// Calls visit(place in the factor, place in the parameter) for each element of the parameter.
template <typename Visit>
void visit_elements(SlotKind kind, const Matrices& of, const Visit& visit) {
  for (std::size_t matrix = 0; matrix < of.count; ++matrix) {
    for (std::size_t row = 0; row < of.rows; ++row) {
      for (std::size_t column = 0; column < of.columns; ++column) {
        const std::size_t place = kind == SlotKind::row_factor ? matrix * of.rows + row : matrix * of.columns + column;
        visit(place, (matrix * of.rows + row) * of.columns + column);
      }
    }
  }
}

std::vector<float> floats_of(const NamedArray& array) {
  HOLDFAST_ASSERT(array.dtype == DType::f32);
  std::vector<float> values(array.bytes.size() / sizeof(float));
  std::memcpy(values.data(), array.bytes.data(), values.size() * sizeof(float));
  return values;
}

NamedArray array_of(const std::vector<float>& values, std::vector<std::uint64_t> shape) {
  NamedArray array{.name = {}, .dtype = DType::f32, .shape = std::move(shape), .bytes = {}};
  array.bytes.resize(values.size() * sizeof(float));
  std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
  return array;
}

NamedArray factor_of(SlotKind kind, const NamedArray& repeated) {
  const std::vector<float> values = floats_of(repeated);
  const Matrices of = matrices_of(repeated.shape);
  std::vector<float> factor(of.count * (kind == SlotKind::row_factor ? of.rows : of.columns));
  visit_elements(kind, of, [&](std::size_t place, std::size_t element) { factor[place] = values[element]; });
  return array_of(factor, keras_slot_shape(kind, repeated.shape));
}

// Keras computes it anew in each step and reads it only there.
NamedArray product_of(const NamedArray& rows, const NamedArray& columns) {
  const std::vector<float> row_values = floats_of(rows);
  const std::vector<float> column_values = floats_of(columns);
  const Matrices of = matrices_of(rows.shape);
  std::vector<float> product(row_values.size());
  for (std::size_t matrix = 0; matrix < of.count; ++matrix) {
    const std::size_t begin = matrix * of.rows * of.columns;
    // In double, because a sum of many floats loses digits.
    double sum = 0;
    for (std::size_t row = 0; row < of.rows; ++row) sum += static_cast<double>(row_values[begin + row * of.columns]);
    const double mean = sum / static_cast<double>(of.rows);
    // Before the first step all factors are 0, and the quotient would be a NaN.
    if (mean == 0) continue;
    for (std::size_t i = begin; i < begin + of.rows * of.columns; ++i) {
      product[i] =
          static_cast<float>(static_cast<double>(row_values[i]) / mean * static_cast<double>(column_values[i]));
    }
  }
  return array_of(product, rows.shape);
}

}  // namespace

std::vector<std::uint64_t> keras_slot_shape(SlotKind kind, Extents parameter) {
  std::vector<std::uint64_t> shape(parameter.begin(), parameter.end());
  // The product has the shape of the parameter.
  if (kind != SlotKind::row_factor && kind != SlotKind::column_factor) return shape;
  if (!is_factored(parameter)) return {};
  shape.erase(shape.end() - (kind == SlotKind::row_factor ? 1 : 2));
  return shape;
}

NamedArray keras_adafactor_slot(SlotKind kind, const NamedArray& rows, const NamedArray& columns) {
  HOLDFAST_ASSERT(kind != SlotKind::whole && rows.shape == columns.shape);
  if (kind == SlotKind::product_of_factors) return is_factored(rows.shape) ? product_of(rows, columns) : rows;
  if (is_factored(rows.shape)) return factor_of(kind, kind == SlotKind::row_factor ? rows : columns);
  // A vector has no factors. Keras keeps an int32 0 in place of each.
  return {.name = {}, .dtype = DType::i32, .shape = {}, .bytes = std::vector<std::byte>(size_bytes(DType::i32))};
}

std::optional<NamedArray> savepoint_adafactor_slot(SlotKind kind, const NamedArray& slot, Extents parameter) {
  HOLDFAST_ASSERT(kind != SlotKind::whole && slot.shape == keras_slot_shape(kind, parameter));
  const bool is_product = kind == SlotKind::product_of_factors;
  // The product says nothing that the factors do not, and factors of a vector say nothing at all.
  if (is_factored(parameter) == is_product) return std::nullopt;
  if (is_product) return slot;
  const std::size_t bytes = size_bytes(slot.dtype);
  const Matrices of = matrices_of(parameter);
  NamedArray repeated{.name = {},
                      .dtype = slot.dtype,
                      .shape = {parameter.begin(), parameter.end()},
                      .bytes = std::vector<std::byte>(of.count * of.rows * of.columns * bytes)};
  visit_elements(kind, of, [&](std::size_t place, std::size_t element) {
    std::memcpy(repeated.bytes.data() + element * bytes, slot.bytes.data() + place * bytes, bytes);
  });
  return repeated;
}

}  // namespace holdfast::format
