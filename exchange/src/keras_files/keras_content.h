#pragma once

// The arrays of a Keras file and the rest of its content, while it is read or composed.

#include <set>
#include <string>
#include <vector>

#include "bytes/array_prefixes.h"
#include "foreign_hdf5/tree.h"
#include "holdfast/format/array_set.h"
#include "keras_files/keras_description.h"
#include "keras_files/keras_model.h"
#include "keras_files/keras_optimizer.h"

namespace holdfast::format {

struct KerasContent {
  std::vector<NamedArray> arrays;
  KerasDescription description;
};

// Sorts the arrays and turns the description into metadata, as read_keras returns them.
ArraySet finish_keras(KerasContent content);

// Takes datasets out of a tree one at a time and names them.
class KerasCollector {
 public:
  KerasCollector(Hdf5Tree& tree, KerasContent& content) : tree_(tree), content_(content) {}

  // Takes the dataset at `path`, which must exist and not be taken yet, as the array `name`, or as another name if
  // that is in use. Returns the name.
  std::string take(const std::string& path, const std::string& name);
  bool has(const std::string& path) const;
  // Takes all datasets that are left, as "extra/<path>".
  void take_rest();
  // Puts the groups that have attributes into the description.
  void take_groups();
  // Takes the optimizer's variables at `paths`, which are in Keras's order. `model` may be null.
  void take_optimizer(const std::vector<std::string>& paths, const KerasOptimizer& optimizer, const KerasModel* model);

 private:
  NamedArray* find(const std::string& path) const;
  std::vector<KerasShape> trainables(const KerasModel* model) const;

  Hdf5Tree& tree_;
  KerasContent& content_;
  std::set<std::string> taken_;  // paths
  std::set<std::string> names_;
};

// Throws Error{invalid_file} for a tree with texts: no weight file has any, and they would be lost. `label` names the
// file.
void require_no_texts(const Hdf5Tree& tree, const std::string& label);

// Returns the file that the description describes: each array at its path, and the groups. Throws
// Error{invalid_argument} for an array without a path and for a path without an array.
Hdf5Tree keras_tree(const std::vector<NamedArray>& arrays, const KerasDescription& description);

}  // namespace holdfast::format
