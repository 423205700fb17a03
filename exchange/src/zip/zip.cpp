// Names of members are checked when they are read and when they are written: an archive of ours must be safe to unpack
// for other programs, too.

#include "zip/zip.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

#include "holdfast/base/error.h"
#include "holdfast/base/utf8.h"

namespace holdfast::format {
namespace {

constexpr std::size_t kMaxMemberNameBytes = 0xFFFF;

// A part "." or ".." would lead out of the folder into which another program unpacks the archive. An empty part would
// give two names to one file.
std::string problem_of_parts(std::string_view name) {
  while (true) {
    const std::size_t slash = name.find('/');
    const std::string_view part = name.substr(0, slash);
    if (part.empty()) return "has an empty part between slashes";
    if (part == "." || part == "..") return fmt::format("has a part \"{}\"", part);
    if (slash == std::string_view::npos) return "";
    name.remove_prefix(slash + 1);
  }
}

}  // namespace

std::string problem_of_member_name(const std::string& name) {
  if (name.size() > kMaxMemberNameBytes) return fmt::format("is longer than {} bytes", kMaxMemberNameBytes);
  if (!is_utf8(name)) return "is not UTF-8 text";
  // Windows takes a backslash for a separator.
  if (name.find('\\') != std::string::npos) return "contains a backslash";
  if (name.starts_with('/')) return "is an absolute path";
  return problem_of_parts(name);
}

std::vector<ZipMember> read_zip(FileSystem& files, const std::string& path) {
  FileSource source(files, path);
  return within_memory(path, [&] { return read_zip(source); });
}

std::vector<ZipMember> read_zip(ByteSource& source) {
  const ZipReader reader(source);
  std::vector<ZipMember> members;
  for (const ZipEntry& entry : reader.entries()) members.push_back({.name = entry.name, .bytes = reader.read(entry)});
  return members;
}

void write_zip(FileSystem& files, const std::string& path, std::span<const ZipMember> members) {
  ZipWriter writer(files, path);
  for (const ZipMember& member : members) {
    const std::array<std::span<const std::byte>, 1> pieces = {member.bytes};
    writer.add(member.name, pieces);
  }
  writer.commit();
}

}  // namespace holdfast::format
