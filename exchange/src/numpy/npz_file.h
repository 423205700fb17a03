#pragma once

// A .npz archive whose headers were read and checked. Elements are read one array at a time.

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bytes/byte_source.h"
#include "holdfast/format/array_set.h"
#include "numpy/npy.h"
#include "zip/zip.h"

namespace holdfast::format {

inline constexpr std::string_view kNpySuffix = ".npy";
inline constexpr const char* kNpzMetadataMember = "holdfast.metadata.json";

// What a caller wants of an archive that not only holds arrays which can be read.
enum class NpzDemand {
  whole,     // all of it, or an error
  readable,  // what can be read, and the names of the rest
};

class NpzFile {
 public:
  struct Entry {
    std::string name;
    ZipEntry member;
    NpyHeader header;
  };

  // Throws as read_npz does. `source` must outlive the object.
  explicit NpzFile(ByteSource& source, NpzDemand demand = NpzDemand::whole);
  // Looks at the arrays of these names alone, in this order. Other members may be anything. Throws Error{not_found} for
  // a name that the archive lacks.
  NpzFile(ByteSource& source, std::span<const std::string> names);

  // JSON; "{}" if the archive has none.
  const std::string& metadata() const { return metadata_; }
  // Sorted by name, or as they were asked for.
  const std::vector<Entry>& entries() const { return entries_; }
  // What the archive holds besides, a sentence each. Empty unless asked for what can be read.
  const std::vector<std::string>& unreadable() const { return unreadable_; }
  NamedArray read(const Entry& entry) const;
  // Calls `take` with the elements in pieces of a few MiB. If the header says Fortran order, they stay in that order.
  void read_pieces(const Entry& entry, const std::function<void(std::span<const std::byte>)>& take) const;

 private:
  ByteSource& source_;
  ZipReader archive_;
  std::string metadata_ = "{}";
  std::vector<Entry> entries_;
  std::vector<std::string> unreadable_;
};

}  // namespace holdfast::format
