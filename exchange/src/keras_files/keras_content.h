#pragma once

// A Keras file's arrays and what else it says, while it is read or composed.

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

// Sorted, and the description as metadata: what read_keras returns.
ArraySet finish_keras(KerasContent content);

// Takes datasets out of a tree one by one and gives them their names.
class KerasCollector {
 public:
  KerasCollector(Hdf5Tree& tree, KerasContent& content) : tree_(tree), content_(content) {}

  // The dataset at `path`, which must be there and not taken yet, as the array `name`; another name where that is
  // taken. Returns the name.
  std::string take(const std::string& path, const std::string& name);
  bool has(const std::string& path) const;
  // What nobody took, as "extra/<path>".
  void take_rest();
  // The groups with attributes, for the description.
  void take_groups();
  // The optimizer's variables at `paths`, in Keras's order. `model` may be null.
  void take_optimizer(const std::vector<std::string>& paths, const KerasOptimizer& optimizer, const KerasModel* model);

 private:
  NamedArray* find(const std::string& path) const;
  std::vector<KerasShape> trainables(const KerasModel* model) const;

  Hdf5Tree& tree_;
  KerasContent& content_;
  std::set<std::string> taken_;  // paths
  std::set<std::string> names_;
};

// Throws Error{invalid_file} for a tree with texts, which no file of weights has: they would be lost. `label` names it.
void require_no_texts(const Hdf5Tree& tree, const std::string& label);

// The file that the description tells of: each array at its path, and the groups. Throws Error{invalid_argument} for an
// array without a path and a path without an array.
Hdf5Tree keras_tree(const std::vector<NamedArray>& arrays, const KerasDescription& description);

}  // namespace holdfast::format
