#pragma once

// The location of the program `holdfast-hdf5-reader`, which parses HDF5 files of other programs in a sandbox. Only
// applications that install this program in a folder of their own need this header.
//
//   set_hdf5_reader_path("/opt/app/libexec/holdfast-hdf5-reader");

#include <string>

namespace holdfast::format {

// Starts this program for every later read. An empty path restores the search: next to the running program, then in
// ../libexec/holdfast from there, then where Holdfast was installed. May be called from any thread.
void set_hdf5_reader_path(std::string path);

}  // namespace holdfast::format
