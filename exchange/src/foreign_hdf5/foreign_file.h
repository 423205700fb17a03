#pragma once

// A copy of another program's HDF5 file in memory. The helper process (tree.h) parses this copy as often as needed:
// once for names and shapes, again for elements, which need not be held at the same time. Changes to the file on disk
// have no effect. One thread at a time may use an object.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
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

  // Each call returns the same tree. A crafted file may make the helper answer otherwise the next time, so after
  // read_heads() other functions throw Error{invalid_file} for datasets that differ from those heads.
  Hdf5Tree read() const;
  // The tree without elements: its arrays have no bytes.
  Hdf5Tree read_heads() const;
  // Calls `take` with the elements of all datasets, in the order of the tree and in pieces of a few MiB.
  void read_elements(const std::function<void(std::size_t dataset, std::span<const std::byte> elements)>& take) const;
  // The datasets of these paths alone, without attributes. Each path must be that of a dataset of read_heads(). Needs
  // TreeDemand::readable.
  Hdf5Tree read_datasets(const std::vector<std::string>& paths) const;

 private:
  template <typename Action>
  auto with_label(const Action& action) const;
  // Null before read_heads().
  const std::vector<NamedArray>* announced() const { return heads_ ? &*heads_ : nullptr; }

  std::string label_;
  TreeLimits limits_;
  TreeDemand demand_ = TreeDemand::whole;
  SharedMemory memory_;
  mutable std::optional<std::vector<NamedArray>> heads_;  // since read_heads(); sorted by path
};

}  // namespace holdfast::format
