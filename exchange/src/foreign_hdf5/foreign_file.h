#pragma once

// A copy of another program's HDF5 file in memory. The helper process (tree.h) parses this copy as often as needed:
// once for names and shapes, again for elements, which need not be held at the same time. Changes to the file on disk
// have no effect.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "foreign_hdf5/tree.h"
#include "holdfast/base/file_system.h"
#include "holdfast/base/shared_memory.h"

namespace holdfast::format {

class ForeignHdf5 {
 public:
  // Reads the whole file and checks its structure. Throws as read_hdf5_tree does, and Error{out_of_memory} for a file
  // above the limits, before memory is allocated for it.
  ForeignHdf5(FileSystem& files, const std::string& path, const TreeLimits& limits = {},
              TreeDemand demand = TreeDemand::whole);
  // Takes a file of `bytes` that `fill` writes, such as a member of an archive. `label` names the file in errors.
  ForeignHdf5(std::uint64_t bytes, const std::string& label, const TreeLimits& limits,
              const std::function<void(std::span<std::byte>)>& fill);

  // Each call returns the same tree.
  Hdf5Tree read() const;
  // The tree without elements: its arrays have no bytes.
  Hdf5Tree read_heads() const;
  // Calls `take` with the elements of all datasets, in the order of the tree and in pieces of a few MiB.
  void read_elements(const std::function<void(std::size_t dataset, std::span<const std::byte> elements)>& take) const;
  // The datasets of these paths alone, without attributes. Needs TreeDemand::readable. A path that is missing or that
  // cannot be read is missing in the tree. Throws Error{invalid_file} where they take more than `bytes`.
  Hdf5Tree read_datasets(const std::vector<std::string>& paths, std::uint64_t bytes) const;

 private:
  template <typename Action>
  auto with_label(const Action& action) const;

  std::string label_;
  TreeLimits limits_;
  TreeDemand demand_ = TreeDemand::whole;
  SharedMemory memory_;
};

}  // namespace holdfast::format
