#pragma once

// What the tests of strangers' HDF5 files share: trees with content, and comparing them.

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "foreign_hdf5/tree.h"
#include "unit/format/support/array_files.h"

namespace holdfast::format::testing {

// With bytes that differ from array to array.
NamedArray make_numbers(const std::string& name, DType dtype, std::vector<std::uint64_t> shape);

// Every element type, scalars, arrays of nothing, texts, every kind of attribute, names beyond ASCII.
Hdf5Tree every_kind_of_content();

// Names the first difference.
::testing::AssertionResult are_equal(const Hdf5Tree& a, const Hdf5Tree& b);

// In tests/unit/exchange/foreign_hdf5/files.
std::string path_of(const std::string& name);

// A few bytes changed, a block zeroed, or the end cut off.
std::vector<std::byte> damaged(std::vector<std::byte> bytes, std::mt19937_64& random);

}  // namespace holdfast::format::testing
