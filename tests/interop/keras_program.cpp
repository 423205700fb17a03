// Reads and writes Keras files for the tests in Python:
//   keras_program read IN OUT.h5            a Keras file as a Holdfast file
//   keras_program write IN.h5 OUT FORM      a Holdfast file as a Keras file
//   keras_program savepoint IN LIKE.h5 OUT.h5  a Keras file's values as a savepoint like another

#include <cstdio>
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

bool run(const std::vector<std::string>& words) {
  if (words.size() == 3 && words[0] == "read") {
    save(words[2], read_keras(posix_file_system(), words[1]));
  } else if (words.size() == 4 && words[0] == "write") {
    write_keras(posix_file_system(), words[2], load(words[1]), keras_form_from_name(words[3]));
  } else if (words.size() == 4 && words[0] == "savepoint") {
    save(words[3], keras_to_savepoint(read_keras(posix_file_system(), words[1]), load(words[2])));
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
