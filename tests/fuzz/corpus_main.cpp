// Runs a fuzz target on its corpus, without libFuzzer: corpus_main FOLDER. Each file is passed whole, cut off at every
// length up to 1024 bytes, and with each of its first 1024 bytes changed.

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "fuzz_input.h"

namespace {

void give(const std::vector<char>& bytes) {
  // A copy of exactly this size, so that the sanitizer notices a read beyond its end.
  const std::vector<std::uint8_t> copy(bytes.begin(), bytes.end());
  static_cast<void>(LLVMFuzzerTestOneInput(copy.data(), copy.size()));
}

void give_variations(std::vector<char> bytes) {
  constexpr std::size_t kMost = 1024;
  const std::size_t count = std::min(bytes.size(), kMost);
  give(bytes);
  for (std::size_t size = 0; size < count; ++size) {
    give({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)});
  }
  for (std::size_t i = 0; i < count; ++i) {
    const char before = bytes[i];
    for (const int change : {0x01, 0x80, 0xFF}) {
      bytes[i] = static_cast<char>(before ^ change);
      give(bytes);
    }
    bytes[i] = before;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
    std::ifstream stream(entry.path(), std::ios::binary);
    give_variations({std::istreambuf_iterator<char>(stream), {}});
    ++files;
  }
  std::printf("%zu files of %s\n", files, argv[1]);
  return files > 0 ? 0 : 1;
}
