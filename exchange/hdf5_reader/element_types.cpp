// HDF5 describes types by their fields: size, order, exponent, mantissa. A type is supported only if it equals one of
// a list, so that unusual floats and integers are refused instead of being converted.

#include "element_types.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

namespace holdfast::hdf5_reader {
namespace {

using format::Checker;
using format::Handle;

struct ClassName {
  H5T_class_t number;
  const char* name;
};

constexpr std::array<ClassName, 11> kClassNames = {{
    {H5T_INTEGER, "integers of unusual size or precision"},
    {H5T_FLOAT, "floats of unusual size or precision"},
    {H5T_TIME, "times"},
    {H5T_STRING, "strings"},
    {H5T_BITFIELD, "bit fields"},
    {H5T_OPAQUE, "opaque bytes"},
    {H5T_COMPOUND, "compounds"},
    {H5T_REFERENCE, "references"},
    {H5T_ENUM, "an enumeration"},
    {H5T_VLEN, "sequences of variable length"},
    {H5T_ARRAY, "arrays"},
}};

Handle copy_type(const Checker& check, hid_t type) {
  return check.opened(H5Tcopy(type), H5Tclose, "cannot create an element type");
}

// As in HDF5 2.0: 1 sign bit, 8 exponent bits with bias 127, 7 mantissa bits.
Handle bfloat16_type(const Checker& check) {
  Handle type = copy_type(check, H5T_IEEE_F32LE);
  check.succeeded(H5Tset_fields(type, 15, 7, 8, 0, 7), "cannot create the bfloat16 type");
  check.succeeded(H5Tset_size(type, 2), "cannot create the bfloat16 type");
  return type;
}

bool is_boolean(hid_t type) {
  // h5py writes bool in this form. Any other enumeration has names that we could not keep.
  if (H5Tget_class(type) != H5T_ENUM || H5Tget_size(type) != 1 || H5Tget_nmembers(type) != 2) return false;
  for (const auto& [name, wanted] : {std::pair<const char*, std::int8_t>{"FALSE", 0}, {"TRUE", 1}}) {
    std::int8_t value = -1;
    if (H5Tenum_valueof(type, name, &value) < 0 || value != wanted) return false;
  }
  return true;
}

}  // namespace

ElementTypes::ElementTypes(const Checker& check) {
  constexpr std::array kAll = {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i8,  DType::i16,
                               DType::i32, DType::i64, DType::u8,  DType::u16,  DType::u32, DType::u64};
  // HDF5 compares types by all their fields, so each type is made once in each byte order.
  for (const DType dtype : kAll) {
    const Handle little = dtype == DType::bf16 ? bfloat16_type(check) : format::element_type(check, dtype);
    for (const bool is_big_endian : {false, true}) {
      // A copy, since setting the order changes the type.
      Handle stored = copy_type(check, little);
      check.succeeded(H5Tset_order(stored, is_big_endian ? H5T_ORDER_BE : H5T_ORDER_LE),
                      "cannot create an element type");
      numbers_.push_back({std::move(stored), {dtype, is_big_endian}});
    }
  }
}

std::optional<ElementType> ElementTypes::find(hid_t type) const {
  if (is_boolean(type)) return ElementType{DType::boolean};
  // Two dozen comparisons, once for each dataset.
  for (const Number& number : numbers_) {
    if (H5Tequal(type, number.stored) > 0) return number.type;
  }
  return std::nullopt;
}

std::string class_name(hid_t type) {
  const auto* found = std::ranges::find(kClassNames, H5Tget_class(type), &ClassName::number);
  return found == kClassNames.end() ? "an unknown class" : found->name;
}

}  // namespace holdfast::hdf5_reader
