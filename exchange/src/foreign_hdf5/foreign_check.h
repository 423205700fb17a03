#pragma once

// Checks the structure of an HDF5 file of another program before HDF5 sees it, in code that checks every read against
// the file's end.
//
// Checked here, without HDF5:
//   - the superblock (versions 0 to 3, offsets and lengths of 8 bytes, no family or multi driver), and that the file is
//     as long as it says;
//   - all objects that groups name in symbol tables and in link messages of their headers: every address lies in the
//     file, there is no loop, the structures together are no larger than the file, no object has two names, and there
//     are not more objects than allowed;
//   - links: only hard ones are accepted;
//   - datasets: no external and no virtual storage, only known filters, and no size that the file could not hold at a
//     compression of 1000 to 1.
//
// Where a caller wants what can be read (TreeDemand::readable), links, storage, filters and sizes of the last two
// points are left to the helper, which lists what it refuses. Links that are not hard, and second names, are not
// followed here.
//
// Left to the sandboxed helper, which makes the same checks on what HDF5 finds: groups whose links lie in a fractal
// heap (more than eight links, in files of HDF5 1.8 and later) with all objects below them, shared header messages,
// sizes against the stored bytes of each dataset, element types, attributes, chunk indexes, and the chunks
// themselves.

#include <cstddef>
#include <span>

#include "foreign_hdf5/tree.h"

namespace holdfast::format {

// Throws Error{invalid_file} with the problem alone; the caller adds the file. Reads each byte of the file's
// structures at most a few times and takes a small multiple of their size in memory, whatever the file claims.
void check_foreign_hdf5(std::span<const std::byte> file, const TreeLimits& limits,
                        TreeDemand demand = TreeDemand::whole);

}  // namespace holdfast::format
