// exchange_program FROM TO IN OUT: reads IN as FROM and writes OUT as TO (safetensors, npz or holdfast). Prints the
// sentence of an Error to standard error and exits with 1.

#include <cstdio>
#include <map>
#include <string>

#include "holdfast/base/error.h"
#include "holdfast/format/exchange/npz.h"
#include "holdfast/format/exchange/safetensors.h"

namespace {

using namespace holdfast;
using namespace holdfast::format;

ArraySet read_holdfast(FileSystem& files, const std::string& path) {
  const ArrayFile file = ArrayFile::open(files, path);
  ArraySet set{.arrays = {}, .metadata = file.metadata()};
  for (const ArrayInfo& array : file.arrays()) {
    set.arrays.push_back({array.name, array.dtype, array.shape, file.read(array.name)});
  }
  return set;
}

ArraySet read(const std::string& form, const std::string& path) {
  FileSystem& files = posix_file_system();
  if (form == "safetensors") return read_safetensors(files, path);
  if (form == "npz") return read_npz(files, path);
  return read_holdfast(files, path);
}

void write(const std::string& form, const std::string& path, const ArraySet& set) {
  FileSystem& files = posix_file_system();
  const std::vector<ArrayView> arrays = views(set.arrays);
  if (form == "safetensors") return write_safetensors(files, path, set.metadata, arrays);
  if (form == "npz") return write_npz(files, path, set.metadata, arrays);
  write_array_file(files, path, set.metadata, arrays);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  try {
    write(argv[2], argv[4], read(argv[1], argv[3]));
    return 0;
  } catch (const Error& error) {
    std::fprintf(stderr, "%s: %s\n", std::string(to_string(error.code())).c_str(), error.what());
    return 1;
  }
}
