// Reads and writes Keras files for the tests in Python:
//   keras_program read IN OUT.h5            converts a Keras file to a Holdfast file
//   keras_program write IN.h5 OUT FORM      converts a Holdfast file to a Keras file
//   keras_program graph IN OUT.json         writes the model of a Keras file as Holdfast describes it
//   keras_program pack METADATA.json ARRAYS.txt VALUES OUT.h5
//       makes a Holdfast file of f32 arrays from a line "name extent extent ..." for each, and all values in order
//   keras_program savepoint IN LIKE.h5 OUT.h5
//       a Keras file's values as a savepoint like LIKE.h5

#include <cstdio>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "holdfast/base/error.h"
#include "holdfast/format/array_file.h"
#include "holdfast/format/exchange/keras.h"

namespace {

using namespace holdfast;
using namespace holdfast::format;

ArraySet load(const std::string& path) {
  const ArrayFile file = ArrayFile::open(posix_file_system(), path);
  ArraySet set;
  set.metadata = file.metadata();
  for (const ArrayInfo& array : file.arrays()) {
    set.arrays.push_back({array.name, array.dtype, array.shape, file.read(array.name)});
  }
  return set;
}

void save(const std::string& path, const ArraySet& set) {
  write_array_file(posix_file_system(), path, set.metadata, views(set.arrays));
}

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

ArraySet pack(const std::string& metadata, const std::string& arrays, const std::string& values) {
  ArraySet set{.arrays = {}, .metadata = text_of(metadata)};
  const std::string bytes = text_of(values);
  std::size_t offset = 0;
  std::istringstream lines(text_of(arrays));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    NamedArray array{.name = "", .dtype = DType::f32, .shape = {}, .bytes = {}};
    words >> array.name;
    std::size_t count = 4;
    for (std::uint64_t extent = 0; words >> extent; count *= extent) array.shape.push_back(extent);
    const auto* begin = reinterpret_cast<const std::byte*>(bytes.data()) + offset;
    array.bytes.assign(begin, begin + count);
    offset += count;
    set.arrays.push_back(std::move(array));
  }
  return set;
}

bool run(const std::vector<std::string>& words) {
  if (words.size() == 3 && words[0] == "read") {
    save(words[2], read_keras(posix_file_system(), words[1]));
  } else if (words.size() == 4 && words[0] == "write") {
    write_keras(posix_file_system(), words[2], load(words[1]), keras_form_from_name(words[3]));
  } else if (words.size() == 3 && words[0] == "graph") {
    std::ofstream(words[2]) << keras_model_graph(read_keras(posix_file_system(), words[1])).graph;
  } else if (words.size() == 4 && words[0] == "savepoint") {
    save(words[3], keras_to_savepoint(read_keras(posix_file_system(), words[1]), load(words[2])));
  } else if (words.size() == 5 && words[0] == "pack") {
    save(words[4], pack(words[1], words[2], words[3]));
  } else {
    return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) try { return run({argv + 1, argv + argc}) ? 0 : 2; } catch (const Error& error) {
  std::fprintf(stderr, "%s: %s\n", std::string(to_string(error.code())).c_str(), error.what());
  return 1;
}
