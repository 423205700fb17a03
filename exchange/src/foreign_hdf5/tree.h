#pragma once

// The content of an HDF5 file of another program as plain values: groups, datasets and their attributes. HDF5's own
// parser has faults on crafted files. So a tree is read in a sandboxed child process that can access only this file,
// after a check of the file's structure (read_hdf5_tree).
//
// Content that has no place here is refused by name. Where a caller wants what can be read of a file, it is listed by
// name instead. It is never left out without a word. docs/decisions/exchange.md

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "holdfast/base/file_system.h"
#include "holdfast/format/array_set.h"

namespace holdfast::format {

// A string, an array of strings (in the file: one axis, fixed or variable length), or numbers. h5py has no empty
// array of strings: it writes an empty list of names as numbers of shape (0).
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

// A dataset that is a single string.
struct Hdf5Text {
  std::string path;  // without a leading '/'
  std::string text;
  std::vector<Hdf5Attribute> attributes;
};

// An object or an attribute that cannot be read.
struct Hdf5Unreadable {
  std::string path;     // printable; of the object, also for an attribute
  std::string problem;  // a sentence that names it
};

// All paths differ.
struct Hdf5Tree {
  std::vector<Hdf5Group> groups;      // sorted by path (as bytes), so parents come first; the root is always there
  std::vector<Hdf5Dataset> datasets;  // sorted by path
  std::vector<Hdf5Text> texts;        // sorted by path
  // For readers of parts: what the file has besides, in no order.
  std::vector<Hdf5Unreadable> unreadable = {};

  const Hdf5Group* find_group(std::string_view path) const;
  const Hdf5Dataset* find_dataset(std::string_view path) const;
  const Hdf5Text* find_text(std::string_view path) const;
};

// Null if no attribute has this name.
const Hdf5Attribute* find_attribute(const std::vector<Hdf5Attribute>& attributes, std::string_view name);

// How much of a file must be readable.
enum class TreeDemand {
  whole,     // anything that has no place in a tree is an error
  readable,  // it is listed in Hdf5Tree::unreadable; a dataset may have several names, and is then there several times
};

// Limits of every file, read or written.
inline constexpr std::size_t kMaxTreePathBytes = 4096;
inline constexpr std::size_t kMaxTreePathParts = 128;

struct TreeLimits {
  std::uint64_t max_array_bytes = std::uint64_t{64} << 30;  // of all datasets together
  std::uint64_t max_objects = 1'000'000;
  // Applies to the file itself, and to the part of one dataset that must be in memory at once: a row of its chunks.
  std::uint64_t max_memory_bytes = std::numeric_limits<std::uint64_t>::max();
  std::chrono::seconds time = std::chrono::seconds(600);  // without progress, not in total
};

// Reads every dataset's elements, in little or big endian, from contiguous, compact or chunked storage (with shuffle,
// deflate, fletcher32, zstd). bfloat16 becomes DType::bf16, whether stored as Keras does (opaque, 2 bytes, with an
// attribute `dtype` = "bfloat16", which is then not listed) or as newer HDF5 does (a float of 8 exponent and 7
// mantissa bits). HDF5's enumeration of FALSE and TRUE (h5py's bool) becomes DType::boolean. All names and strings
// are UTF-8 without NUL. Strings may have fixed or variable length and be stored as ASCII or UTF-8; padding is
// removed. An attribute without a value (HDF5's null space) is an empty string or numbers of shape (0). Attributes
// are sorted by name. Names, attributes and texts together are bounded by the size of the file, since they are not
// compressed.
//
// Takes memory for the file and for its arrays. Throws Error{not_found, input_output} of the file system. Throws
// Error{invalid_file}, naming the object, for content that is damaged, hostile or not allowed in a foreign file:
// soft, external or user-defined links, an object with two names, virtual or external storage, other filters, named
// types; datasets or attributes of references, compounds, times, other enumerations and opaque types; datasets that
// are arrays of strings; attributes that are arrays of strings with several axes. No content of the file is ever run
// as code.
Hdf5Tree read_hdf5_tree(FileSystem& files, const std::string& path, const TreeLimits& limits = {});

// The same for a file in memory, such as a member of an archive. `label` names the file in errors.
Hdf5Tree read_hdf5_tree(std::span<const std::byte> file, const std::string& label, const TreeLimits& limits = {});

// Writes a plain HDF5 file that stock h5py and Keras read: contiguous datasets, hard links only, no times. bf16 is
// stored as Keras does, boolean as h5py does, strings as UTF-8 of variable length. Groups that paths imply need not
// be listed, and nothing needs to be sorted. The same tree gives the same bytes, in any order of its objects and
// attributes. Throws Error{invalid_argument} for what such a file cannot hold: names and strings that are not UTF-8
// or contain NUL, two objects of one path, an attribute of bf16, an attribute `dtype` of a bf16 dataset, numbers
// whose bytes do not fit their shape.
//
// The file is written completely or not at all, and is durable on return.
void write_hdf5_tree(FileSystem& files, const std::string& path, const Hdf5Tree& tree);

// Returns the bytes of the file that write_hdf5_tree writes. `label` names the file in errors.
std::vector<std::byte> compose_hdf5_tree(const std::string& label, const Hdf5Tree& tree);

}  // namespace holdfast::format
