#include "unit/data/support/array_writer.h"

#include <zlib.h>

namespace holdfast {
namespace {

std::string little_endian(std::uint64_t value, std::size_t bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i) text += static_cast<char>(i < sizeof(value) ? value >> (8 * i) : 0);
  return text;
}

void write_text(const std::string& path, const std::string& content) {
  write_plain(path, Bytes(content.begin(), content.end()));
}

// What the header in front of a member and its entry in the directory have in common.
std::string zip_fields(const std::string& name, const std::string& content) {
  const auto crc = ::crc32(0, reinterpret_cast<const Bytef*>(content.data()), static_cast<uInt>(content.size()));
  // Version 2.0, no flags, stored, the first day that ZIP knows.
  return little_endian(20, 2) + little_endian(0, 6) + little_endian(33, 2) + little_endian(crc, 4) +
         little_endian(content.size(), 4) + little_endian(content.size(), 4) + little_endian(name.size(), 2) +
         little_endian(0, 2);
}

}  // namespace

std::string npy_bytes(const std::string& type, const std::string& shape, const std::string& elements,
                      const std::string& fortran) {
  const std::string header = "{'descr': '" + type + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }\n";
  return "\x93NUMPY" + std::string{'\1', '\0'} + little_endian(header.size(), 2) + header + elements;
}

void write_npy(const std::string& path, const std::string& type, const std::string& shape, const std::string& elements,
               const std::string& fortran) {
  write_text(path, npy_bytes(type, shape, elements, fortran));
}

void write_archive(const std::string& path, const std::vector<std::pair<std::string, std::string>>& members) {
  std::string file;
  std::string directory;
  for (const auto& [name, content] : members) {
    const std::size_t offset = file.size();
    const std::string fields = zip_fields(name, content);
    file += "PK\3\4" + fields + name + content;
    directory += "PK\1\2" + little_endian(20, 2) + fields + little_endian(0, 10) + little_endian(offset, 4) + name;
  }
  const std::size_t begin = file.size();
  file += directory + "PK\5\6" + little_endian(0, 4) + little_endian(members.size(), 2) +
          little_endian(members.size(), 2) + little_endian(directory.size(), 4) + little_endian(begin, 4) +
          little_endian(0, 2);
  write_text(path, file);
}

void write_safetensors_text(const std::string& path, const std::string& header, const std::string& elements) {
  write_text(path, little_endian(header.size(), 8) + header + elements);
}

}  // namespace holdfast
