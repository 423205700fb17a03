#pragma once

// The content of a stranger's HDF5 file by HDF5's own parser, which a crafted file can make do anything: only the
// helper program calls it on files that are not ours, locked in (sandbox.h). Tests call it on files that they made.

#include <cstddef>
#include <cstdint>
#include <span>

#include "hdf5/tree.h"

namespace holdfast::format {

// Takes a tree piece by piece: groups sorted by path, then datasets sorted by path.
class TreeSink {
 public:
  virtual ~TreeSink() = default;

  virtual void add_group(Hdf5Group group) = 0;
  // Without its elements, which follow in pieces: `bytes` of them altogether.
  virtual void add_dataset(Hdf5Dataset dataset, std::uint64_t bytes) = 0;
  virtual void add_elements(std::span<const std::byte> bytes) = 0;
};

// What the datasets of a file of `file_bytes` may declare together: what no honest compression goes beyond.
std::uint64_t max_declared_bytes(std::uint64_t file_bytes, const TreeLimits& limits);
// What the names and attributes of a file of `file_bytes` may take together: they are not compressed.
std::uint64_t max_head_bytes(std::uint64_t file_bytes);

// Sets HDF5 up for this process, with zstd among its filters: what it does once, before the process is locked in. False
// when HDF5 refuses.
bool prepare_hdf5();

// Throws Error{invalid_file} with the problem alone: the caller names the file. prepare_hdf5 was called. Takes
// memory for a few pieces, not for the whole.
void parse_hdf5_tree(std::span<const std::byte> file, const TreeLimits& limits, TreeSink& sink);

}  // namespace holdfast::format
