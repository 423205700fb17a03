#pragma once

// Small trees, laid out like Keras's HDF5 files.

#include <string>
#include <vector>

#include "foreign_hdf5/tree.h"
#include "holdfast/base/error.h"
#include "keras_files/keras_json.h"

namespace holdfast::format::testing {

// An f32 array whose values depend on its name, so that no two arrays are equal.
NamedArray floats(const std::string& name, const std::vector<std::uint64_t>& shape);
NamedArray count(const std::string& name, std::int32_t value);

// Sorts groups and datasets, and adds the groups that paths imply.
Hdf5Tree tree(std::vector<Hdf5Group> groups, std::vector<NamedArray> datasets);

// Returns {"class_name": ..., "config": {"name": ..., options}}.
Json layer(const std::string& class_name, const std::string& name, Json options = Json::object());
Json sequential(std::vector<Json> layers);

// A savepoint of one Dense layer "d" with 2 inputs and 3 units, trained with Adam.
Json dense_savepoint_metadata(bool use_bias);

// Returns "CODE: sentence" if the call throws an Error, "" otherwise.
template <typename Call>
std::string error_of(Call&& call) {
  try {
    call();
    return "";
  } catch (const Error& error) {
    return std::string(to_string(error.code())) + ": " + error.what();
  }
}

const NamedArray* find(const std::vector<NamedArray>& arrays, const std::string& name);
std::vector<std::string> names(const std::vector<NamedArray>& arrays);

}  // namespace holdfast::format::testing
