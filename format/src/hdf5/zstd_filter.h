#pragma once

namespace holdfast::format {

// Makes HDF5 decode the registered filter 32015 (zstd) in this process. Encodes nothing. The caller holds a Session.
// False when HDF5 does not take it.
bool register_zstd_filter();

}  // namespace holdfast::format
