#pragma once

// The protocol by which the helper program sends a tree: records through a pipe. A crafted file may control the
// helper, so the receiver treats every byte as hostile.
//
//   record    kind u8, payload bytes u64, payload
//   group     (1) path, attributes
//   dataset   (2) path, element type u8, axes u8, extents u64 each, attributes
//   elements  (3) of the latest dataset, in any number of records
//   finished  (4) nothing
//   refused   (5) error code u8, text that says what is wrong
//   text      (6) path, text, attributes
//   unreadable (7) path, text that says what is wrong; only if the receiver asked for what can be read
//
//   text        bytes u32, the bytes
//   attributes  count u32, then name, kind u8 and value each: text (0), count u32 and texts (1), element type u8,
//               axes u8, extents u64 each, bytes (2)
//
// Groups come first, then datasets, then texts; each kind is sorted by path. Unreadable objects may come between. All
// integers are little-endian.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "foreign_hdf5/tree.h"
#include "holdfast/base/error.h"

namespace holdfast::format {

// The most bytes that the datasets of a file of `file_bytes` may declare together.
std::uint64_t max_declared_bytes(std::uint64_t file_bytes, const TreeLimits& limits);
// The most bytes that its names, attributes and texts may take together. They are not compressed.
std::uint64_t max_head_bytes(std::uint64_t file_bytes);

// The bytes of a text or the length of a list, as records have it. Throws Error{unsupported} above 32 bits.
std::uint32_t record_count(std::size_t count);

// The source of records.
class RecordSource {
 public:
  virtual ~RecordSource() = default;
  // Fills `out`, or throws.
  virtual void read(std::span<std::byte> out) = 0;
};

// Reads records up to `finished` and returns the tree, if a file of `file_bytes` could hold it. Never takes more
// memory than the limits and the file's size allow, whatever the records claim. Throws what the source throws, the
// error in a `refused` record (invalid_file, out_of_memory, unsupported or unavailable, with printable text), and
// Error{invalid_file} for records that break a rule.
struct TreeDecodeOptions {
  bool heads_only = false;  // the sender leaves elements out, and the tree's arrays have none
  bool is_partial = false;  // the sender lists what it cannot read
  // Receives whole elements of dataset number `dataset` in order, in pieces of a few MiB. The tree's arrays then have
  // none.
  std::function<void(std::size_t dataset, std::span<const std::byte> elements)> take = {};
  // The datasets that must come, in this order, where an earlier answer announced them. Null: any.
  const std::vector<NamedArray>* announced = nullptr;
};
Hdf5Tree decode_tree(RecordSource& source, std::uint64_t file_bytes, const TreeLimits& limits,
                     const TreeDecodeOptions& options = {});

// Sends a tree in pieces through `write`: first groups, then datasets, then texts, each kind sorted by path.
class TreeEncoder {
 public:
  explicit TreeEncoder(std::function<void(std::span<const std::byte>)> write) : write_(std::move(write)) {}

  void add_group(const Hdf5Group& group);
  // The dataset comes without its elements. They follow in pieces.
  void add_dataset(const Hdf5Dataset& dataset);
  void add_elements(std::span<const std::byte> bytes);
  void add_text(const Hdf5Text& text);
  void add_unreadable(const Hdf5Unreadable& object);
  // Exactly one of these two calls must come last.
  void finish();
  void refuse(ErrorCode code, std::string_view problem);

 private:
  std::function<void(std::span<const std::byte>)> write_;
};

}  // namespace holdfast::format
