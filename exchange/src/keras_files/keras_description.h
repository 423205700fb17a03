#pragma once

// The content of a Keras file besides its arrays. It is kept in an ArraySet's metadata, so that the same file can be
// written again.

#include <map>
#include <set>
#include <string>
#include <vector>

#include "foreign_hdf5/tree.h"
#include "holdfast/format/exchange/keras_form.h"
#include "keras_files/keras_json.h"

namespace holdfast::format {

struct KerasDescription {
  KerasForm form = KerasForm::weights;
  std::string config;                        // the model's configuration as JSON text; may be empty
  std::string archive_metadata;              // an archive's metadata.json; may be empty
  std::map<std::string, std::string> paths;  // array name -> dataset in the HDF5 file, or member of the archive
  std::vector<std::string> optimizer;        // names of its arrays, in Keras's order
  std::vector<Hdf5Group> groups;             // groups with attributes
  // Arrays of the model in a Holdfast file that the Keras file does not have, and those that are scalars there.
  std::set<std::string> added = {};
  std::set<std::string> scalars = {};
  std::size_t replicated = 0;  // how many wrappers of multi_gpu_model were removed
};

std::string keras_metadata(const KerasDescription& description);
// `metadata` is the parsed JSON. Throws Error{invalid_argument}.
KerasDescription keras_description(const Json& metadata);

// Returns the texts of a list attribute ("layer_names"), even if it is split into parts ("layer_names0", ...). Empty
// if the attribute is missing.
std::vector<std::string> list_attribute(const std::vector<Hdf5Attribute>& attributes, std::string_view name);
bool has_list_attribute(const std::vector<Hdf5Attribute>& attributes, std::string_view name);
// Empty if the attribute is missing.
std::string text_attribute(const std::vector<Hdf5Attribute>& attributes, std::string_view name);

}  // namespace holdfast::format
