#pragma once

// The content of an HDF5 file that is not ours, as plain values: groups, datasets and their attributes. HDF5's own
// parser has faults on crafted files, so a tree is read in a child process that may do nothing but read this one file,
// and only after a look at the file's structure (read_hdf5_tree); see foreign_reader.

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "holdfast/base/file_system.h"
#include "holdfast/format/array_set.h"

namespace holdfast::format {

// A string, an array of strings (of any fixed or variable length in the file), or numbers.
struct Hdf5Attribute {
  std::string name;
  std::variant<std::string, std::vector<std::string>, NamedArray> value;  // the array's name is empty
};

struct Hdf5Group {
  std::string path;  // without a leading '/'; empty for the root
  std::vector<Hdf5Attribute> attributes;
};

struct Hdf5Dataset {
  NamedArray array;  // its name is the path, without a leading '/'
  std::vector<Hdf5Attribute> attributes;
};

struct Hdf5Tree {
  std::vector<Hdf5Group> groups;      // sorted by path, parents first; the root is always there
  std::vector<Hdf5Dataset> datasets;  // sorted by path

  const Hdf5Group* find_group(std::string_view path) const;
  const Hdf5Dataset* find_dataset(std::string_view path) const;
};

// Null when there is none of that name.
const Hdf5Attribute* find_attribute(const std::vector<Hdf5Attribute>& attributes, std::string_view name);

struct TreeLimits {
  std::uint64_t max_array_bytes = std::uint64_t{64} << 30;  // of all datasets together
  std::uint64_t max_objects = 1'000'000;
  std::chrono::seconds time = std::chrono::seconds(600);  // without progress, not of the whole
};

// Every dataset's elements, whatever its storage (contiguous, compact, chunked with shuffle, deflate, fletcher32,
// zstd). bfloat16 as Keras stores it (opaque of 2 bytes with attribute `dtype` = "bfloat16") becomes DType::bf16,
// HDF5's enumeration of FALSE and TRUE (h5py's bool) DType::boolean. Throws Error{invalid_file} for what is damaged,
// hostile or uses what a stranger's file may not (soft, external or user-defined links, virtual or external storage,
// other filters, references, compound types), naming the object; nothing of the file has run as code then.
Hdf5Tree read_hdf5_tree(FileSystem& files, const std::string& path, const TreeLimits& limits = {});

// A plain HDF5 file that stock h5py and Keras read: contiguous datasets, hard links only, no times. bf16 is stored as
// Keras does, boolean as h5py does. Whole or not at all, durable on return.
void write_hdf5_tree(FileSystem& files, const std::string& path, const Hdf5Tree& tree);

}  // namespace holdfast::format
