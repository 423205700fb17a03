// Reads a savepoint with only the format library.

#include <cstdio>

#include "holdfast/format/array_file.h"

int main(int, char** argv) {
  const auto file = holdfast::format::ArrayFile::open(holdfast::posix_file_system(), argv[1]);
  for (const auto& array : file.arrays()) std::printf("reader: %s\n", array.name.c_str());
  return file.arrays().empty() ? 1 : 0;
}
