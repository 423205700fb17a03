#pragma once

// The content of a stranger's HDF5 file by HDF5's own parser, which a crafted file can make do anything: only for a
// process that is locked in (sandbox.h).

#include <cstddef>
#include <span>

#include "foreign_hdf5/tree_stream.h"

namespace holdfast::hdf5_reader {

// Sets HDF5 up for this process: what it does once, before the process is locked in. False when HDF5 refuses.
bool prepare_hdf5();

// `heads`: names, types, shapes, attributes and texts, without the elements of datasets.
enum class TreePart { all, heads };

// Throws Error{invalid_file} with the problem alone (the caller names the file), and out_of_memory where the rows of
// chunks of a dataset are larger than the limits allow. Call prepare_hdf5 first. Takes memory for a few pieces, not for
// the whole.
//
// What is refused here rather than before HDF5 sees the file: see foreign_check.h.
void parse_hdf5_tree(std::span<const std::byte> file, const format::TreeLimits& limits, TreePart part,
                     format::TreeSink& sink);

}  // namespace holdfast::hdf5_reader
