#pragma once

// Shared by the tests of foreign HDF5 files: trees with content, and their comparison.

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "foreign_hdf5/tree.h"
#include "unit/format/support/array_files.h"

namespace holdfast::format::testing {

// The bytes differ from array to array.
NamedArray make_numbers(const std::string& name, DType dtype, std::vector<std::uint64_t> shape);

// A tree with every element type, scalars, empty arrays, texts, every kind of attribute, and names beyond ASCII.
Hdf5Tree every_kind_of_content();

// A failure names the first difference.
::testing::AssertionResult are_equal(const Hdf5Tree& a, const Hdf5Tree& b);

// The path of a file in tests/unit/exchange/foreign_hdf5/files.
std::string path_of(const std::string& name);

// Returns `bytes` with a few bytes changed, a block zeroed, or the end cut off.
std::vector<std::byte> damaged(std::vector<std::byte> bytes, std::mt19937_64& random);

}  // namespace holdfast::format::testing
