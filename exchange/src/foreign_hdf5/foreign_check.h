#pragma once

// A look at a stranger's HDF5 file before HDF5 sees it, by code of ours whose every read is checked against the file's
// end: is it what it says, and does it use what such a file may not?
//
// Checked here, without HDF5:
//   - the superblock (versions 0 to 3, offsets and lengths of 8 bytes, no family or multi driver) and that the file is
//     not shorter than it says;
//   - all objects that groups name in symbol tables and in link messages of their headers: every address lies in the
//     file, nothing leads back, the structures together are no larger than the file, no object has two names, and there
//     are not more objects than allowed;
//   - links: only hard ones;
//   - datasets: no external and no virtual storage, known filters, no size that the whole file could not hold at 1000
//     to 1.
//
// Left to the locked-in helper, which checks the same once HDF5 has found it: groups whose links lie in a fractal heap
// (more than eight links in files of HDF5 1.8 and later) with all below them, header messages that are shared, sizes
// against what is stored of each dataset, element types, attributes, chunk indexes and the chunks themselves.

#include <cstddef>
#include <span>

#include "foreign_hdf5/tree.h"

namespace holdfast::format {

// Throws Error{invalid_file} with the problem alone: the caller names the file. Reads no byte of the file's structures
// more often than a few times and takes a small multiple of their size, whatever they say.
void check_foreign_hdf5(std::span<const std::byte> file, const TreeLimits& limits);

}  // namespace holdfast::format
