#pragma once

// Reads the content of an HDF5 file of another program with HDF5's own parser. A crafted file can make that parser do
// anything, so it must run inside the sandbox (sandbox.h).

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "foreign_hdf5/tree_stream.h"

namespace holdfast::hdf5_reader {

// Does HDF5's one-time initialisation for this process, before it enters the sandbox. Returns false if HDF5 fails.
bool prepare_hdf5();

// `heads` means names, types, shapes, attributes and texts, without the elements of datasets.
enum class TreePart { all, heads };

// What of a file is asked for.
struct TreeRequest {
  format::TreeLimits limits;
  TreePart part = TreePart::all;
  format::TreeDemand demand = format::TreeDemand::whole;
  std::vector<std::string> paths = {};  // of datasets; only these, and no attributes or texts. Empty: everything
};

// Throws Error{invalid_file} with the problem alone (the caller adds the file), and Error{out_of_memory} where a
// dataset's row of chunks is larger than the limits allow. prepare_hdf5 must have been called. Takes memory for a few
// pieces, not for the whole content.
//
// foreign_check.h says what is checked here and what was checked before HDF5 saw the file.
void parse_hdf5_tree(std::span<const std::byte> file, const TreeRequest& request, format::TreeEncoder& encoder);

}  // namespace holdfast::hdf5_reader
