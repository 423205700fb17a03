#pragma once

// A .npy file, whose header was read and checked: one array without a name.

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "bytes/byte_source.h"
#include "holdfast/format/array_set.h"
#include "numpy/npy.h"

namespace holdfast::format {

class NpyFile {
 public:
  struct Entry {
    NpyHeader header;
  };

  // Throws as read_npz does. `source` must outlive the object.
  explicit NpyFile(ByteSource& source);

  // "{}": the file has no place for more.
  const std::string& metadata() const { return metadata_; }
  // The array, as files of several arrays have them.
  const std::vector<Entry>& entries() const { return entries_; }
  NamedArray read(const Entry& entry) const;
  // Calls `take` with the elements in pieces of 1 MiB. If the header says Fortran order, they stay in that order.
  void read_pieces(const Entry& entry, const std::function<void(std::span<const std::byte>)>& take) const;

 private:
  ByteSource& source_;
  const std::string metadata_ = "{}";
  std::vector<Entry> entries_;
};

}  // namespace holdfast::format
