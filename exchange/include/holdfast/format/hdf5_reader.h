#pragma once

// Where the program `holdfast-hdf5-reader` is, which parses HDF5 files of strangers in a process of its own that may
// do nothing else. Only applications that ship it in a place of their own need this.

#include <string>

namespace holdfast::format {

// From now on this very program is started. Empty restores the search: beside the running program, in
// ../libexec/holdfast from there, where Holdfast was installed. May be called from any thread.
void set_hdf5_reader_path(std::string path);

}  // namespace holdfast::format
