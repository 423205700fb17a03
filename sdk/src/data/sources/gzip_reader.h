#pragma once

// The content of a file that is plain or compressed by gzip. The content decides which, not the name.

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace holdfast {

class GzipReader {
 public:
  // `format` is for messages: "IDX". Throws Error{not_found}, {refused} or {input_output} if the file cannot be opened,
  // and Error{invalid_file} for anything but a regular file.
  GzipReader(const std::string& path, std::string format);
  ~GzipReader() { gzclose_r(file_); }
  GzipReader(const GzipReader&) = delete;
  GzipReader& operator=(const GzipReader&) = delete;

  // Returns fewer bytes than asked for only at the end of the content. Throws Error{invalid_file} for a gzip stream
  // that is cut off or damaged.
  std::size_t read(std::span<std::uint8_t> bytes);

  // Throws Error{invalid_file}: "PATH is not a whole IDX file: REASON".
  [[noreturn]] void refuse(const std::string& reason) const;

 private:
  std::string path_;
  std::string format_;
  gzFile file_;
};

}  // namespace holdfast
