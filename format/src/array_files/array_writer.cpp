// The writing half of array_file.h: an atomic write of the pieces, in several threads, and the structure
// around them.

#include <fmt/format.h>

#include <new>

#include "array_files/array_content.h"
#include "container/piece_writer.h"
#include "holdfast/base/error.h"
#include "holdfast/base/whole_file.h"
#include "holdfast/format/array_file.h"

namespace holdfast::format {

Digest write_array_file(FileSystem& files, const std::string& path, std::string_view metadata_json,
                        std::span<const ArrayView> arrays, const WriteOptions& options) {
  const ArrayContent content(path, metadata_json, arrays, options);
  Digest result;
  try {
    write_whole_file(files, path, [&](File& file) {
      PieceEncoder encoder(content.metadata, content.sorted, options.compression);
      write_pieces(file, encoder, options);
      result = write_structure(file, path, encoder.finish(), options);
    });
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::out_of_memory,
                fmt::format("cannot write {}: there is no memory; free some memory and try again", path));
  }
  return result;
}

}  // namespace holdfast::format
