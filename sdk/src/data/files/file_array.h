#pragma once

// An array whose rows are read from its file one at a time.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "holdfast/base/digest.h"
#include "holdfast/base/file_system.h"
#include "holdfast/core/shape.h"
#include "holdfast/data/array_files.h"

namespace holdfast {

// "array \"x\" of data.npz", and "x.npy" for a file of one array.
std::string file_array_label(const std::string& path, const std::string& array);
// Throws Error{invalid_file} for an extent beyond 63 bits.
Shape shape_of_file_array(const std::vector<std::uint64_t>& extents, const std::string& label);

// Elements that lie in a file without a description, row-major and little-endian.
struct RawElements {
  std::string label;           // for messages
  std::unique_ptr<File> file;  // open for reading
  std::uint64_t offset = 0;    // of the first element, in bytes
  DType dtype = DType::f32;    // in the file
};

// Safe to use from several threads.
class OpenFileArray {
 public:
  // Throws as from_files() does. `files` must outlive the object.
  OpenFileArray(FileSystem& files, const FileArray& array);
  // An array of that shape, whose elements become `dtype`. The caller has seen that the file is long enough.
  OpenFileArray(RawElements elements, Shape shape, DType dtype);

  const std::string& label() const { return label_; }
  const Shape& shape() const { return shape_; }  // [rows, shape of a sample]
  DType dtype() const { return dtype_; }         // after the conversion
  DType stored() const { return stored_; }       // before it
  // Writes rows [row, row + rows), which must exist, as elements of dtype(). Throws Error{invalid_file} if the file has
  // become shorter, and for a value that does not fit.
  void read(std::int64_t row, std::int64_t rows, std::span<std::byte> to) const;
  // A hint that these rows will be read soon.
  void expect(std::int64_t row, std::int64_t rows = 1) const;
  // The digest of all elements of dtype(), as digest() of a tensor's bytes. Reads the whole array.
  Digest digest() const;

 private:
  std::string label_;
  std::unique_ptr<File> file_;
  std::uint64_t offset_ = 0;
  bool is_big_endian_ = false;
  DType stored_ = DType::f32;
  DType dtype_ = DType::f32;
  Shape shape_;
};

}  // namespace holdfast
