#pragma once

// What a Keras file says besides its arrays, kept in an ArraySet's metadata, so that the same file can be written
// again.

#include <map>
#include <string>
#include <vector>

#include "foreign_hdf5/tree.h"
#include "holdfast/format/exchange/keras.h"
#include "keras_files/keras_json.h"

namespace holdfast::format {

struct KerasDescription {
  KerasForm form = KerasForm::weights;
  std::string config;                        // the model's, a JSON text; empty when there is none
  std::string archive_metadata;              // an archive's metadata.json; empty when there is none
  std::map<std::string, std::string> paths;  // of each array: the dataset in the HDF5 file, or the archive's member
  std::vector<std::string> optimizer;        // names of its arrays, in Keras's order
  std::vector<Hdf5Group> groups;             // those with attributes
  std::size_t replicated = 0;                // how many times multi_gpu_model had wrapped it
};

std::string keras_metadata(const KerasDescription& description);
// `metadata` is parsed. Throws Error{invalid_argument}.
KerasDescription keras_description(const Json& metadata);

// The texts of a list attribute ("layer_names"), also where it is split in parts ("layer_names0", ...); empty when
// there is none.
std::vector<std::string> list_attribute(const std::vector<Hdf5Attribute>& attributes, std::string_view name);
bool has_list_attribute(const std::vector<Hdf5Attribute>& attributes, std::string_view name);
// Empty where there is none.
std::string text_attribute(const std::vector<Hdf5Attribute>& attributes, std::string_view name);

}  // namespace holdfast::format
