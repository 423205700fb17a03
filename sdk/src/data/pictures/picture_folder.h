#pragma once

// The files of a folder of pictures, in an order that no file system decides.

#include <cstdint>
#include <string>
#include <vector>

#include "holdfast/data/pictures.h"

namespace holdfast {

struct PictureFile {
  std::string path;  // links in it are resolved
  std::int64_t bytes = 0;
  std::int32_t label = 0;  // the number of its class
};

struct PictureFolder {
  std::vector<std::string> classes;
  std::vector<PictureFile> files;  // class by class, each sorted by the bytes of the names within its folder
  std::string digest;              // of all names and sizes
};

// Lists the files of read_pictures(). Throws as that does.
PictureFolder list_pictures(const std::string& folder, const PictureOptions& options);

// The content of a listed file. Throws Error{invalid_file} if it has another size by now, exceeds max_file_bytes, or is
// a link.
std::vector<std::uint8_t> read_listed(const PictureFile& file, std::int64_t max_file_bytes);

}  // namespace holdfast
