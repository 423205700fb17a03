#include "unit/data/support/idx_writer.h"

#include <zlib.h>

#include <fstream>
#include <iterator>
#include <stdexcept>

namespace holdfast {

Bytes idx_bytes(const std::vector<std::uint32_t>& extents, const Bytes& elements) {
  Bytes bytes = {0, 0, 0x08, static_cast<std::uint8_t>(extents.size())};
  for (const std::uint32_t extent : extents) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<std::uint8_t>(extent >> shift));
  }
  bytes.insert(bytes.end(), elements.begin(), elements.end());
  return bytes;
}

void write_plain(const std::string& path, const Bytes& content) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(content.data()), static_cast<std::streamsize>(content.size()));
  file.close();
  if (!file) throw std::runtime_error("cannot write " + path);
}

void write_gzip(const std::string& path, const Bytes& content) {
  const gzFile file = gzopen(path.c_str(), "wb");
  const int written = file == nullptr ? -1 : gzwrite(file, content.data(), static_cast<unsigned>(content.size()));
  if (written != static_cast<int>(content.size()) || gzclose(file) != Z_OK) {
    throw std::runtime_error("cannot write " + path);
  }
}

Bytes read_plain(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace holdfast
