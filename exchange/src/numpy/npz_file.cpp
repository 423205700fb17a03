// Opening an archive reads only the headers of its arrays, so that a listing of a large file is quick. The elements of
// one array are decompressed when they are asked for.

#include "numpy/npz_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "bytes/array_checks.h"

namespace holdfast::format {
namespace {

// The longest metadata that is read. Holdfast writes none that is longer, and JSON is parsed as a whole.
constexpr std::uint64_t kMaxMetadataBytes = std::uint64_t{64} << 20;

std::string read_metadata(const std::string& path, const ZipReader& archive, const ZipEntry& entry) {
  // Asked before decompressing: a small member may claim gigabytes.
  if (entry.size_bytes > kMaxMetadataBytes) {
    const std::string sizes =
        fmt::format("has {} bytes of metadata, and at most {} are read", entry.size_bytes, kMaxMetadataBytes);
    throw NpyError(ErrorCode::invalid_file,
                   fmt::format("{} {}; remove {} from the archive", path, sizes, quoted_text(entry.name)),
                   fmt::format("{} {}", quoted_text(entry.name), sizes));
  }
  const std::vector<std::byte> bytes = archive.read(entry);
  std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (is_json(text)) return text;
  throw NpyError(ErrorCode::invalid_file,
                 fmt::format("{} has Holdfast metadata that is not JSON; use another copy of it", path),
                 fmt::format("{} is not JSON", quoted_text(entry.name)));
}

// Reads only the start of a member: opening an archive must not decompress its elements.
NpzFile::Entry read_head(const std::string& path, const ZipReader& archive, const ZipEntry& member) {
  NpzFile::Entry entry{
      .name = member.name.substr(0, member.name.size() - kNpySuffix.size()), .member = member, .header = {}};
  entry.header = parse_npy_header(path, entry.name, archive.read_start(member, kMaxNpyHeadBytes));
  check_npy_size(path, entry.name, entry.header, member.size_bytes);
  return entry;
}

}  // namespace

NpzFile::NpzFile(ByteSource& source, NpzDemand demand) : source_(source), archive_(source) {
  for (const ZipEntry& member : archive_.entries()) {
    const bool is_metadata = member.name == kNpzMetadataMember;
    if (is_metadata || member.name.ends_with(kNpySuffix)) {
      try {
        if (is_metadata) {
          metadata_ = read_metadata(source.path(), archive_, member);
        } else {
          entries_.push_back(read_head(source.path(), archive_, member));
        }
      } catch (const NpyError& error) {
        // A caller that takes what it can get is told what is wrong with the rest.
        if (demand == NpzDemand::whole) throw;
        unreadable_.push_back(error.problem());
      }
    } else if (demand == NpzDemand::readable) {
      unreadable_.push_back(fmt::format("{} is not an array", quoted_text(member.name)));
    } else {
      refuse_file(source.path(), fmt::format("has a member {}, which is not an array; remove it from the archive",
                                             quoted_text(member.name)));
    }
  }
  std::ranges::sort(entries_, {}, &Entry::name);
}

NpzFile::NpzFile(ByteSource& source, std::span<const std::string> names) : source_(source), archive_(source) {
  for (const std::string& name : names) {
    const auto member = std::ranges::find(archive_.entries(), name + std::string(kNpySuffix), &ZipEntry::name);
    // The error lists the names that are there, among which a user finds the right one.
    if (member == archive_.entries().end()) {
      std::vector<std::string> present;
      for (const ZipEntry& entry : archive_.entries()) {
        if (entry.name.ends_with(kNpySuffix)) present.push_back(entry.name.substr(0, entry.name.size() - 4));
      }
      refuse_missing(source.path(), name, std::move(present));
    }
    entries_.push_back(read_head(source.path(), archive_, *member));
  }
}

NamedArray NpzFile::read(const Entry& entry) const {
  return parse_npy(source_.path(), entry.name, archive_.read(entry.member));
}

void NpzFile::read_pieces(const Entry& entry, const std::function<void(std::span<const std::byte>)>& take) const {
  // Neither the header nor a piece ends at an element's boundary, so the rest of each piece waits for the next.
  const std::size_t element_bytes = size_bytes(entry.header.dtype);
  std::size_t to_skip = entry.header.data_offset;
  std::vector<std::byte> waiting;
  archive_.read_pieces(entry.member, [&](std::span<const std::byte> piece) {
    const std::size_t skipped = std::min(to_skip, piece.size());
    to_skip -= skipped;
    piece = piece.subspan(skipped);
    waiting.insert(waiting.end(), piece.begin(), piece.end());
    const std::size_t whole = waiting.size() / element_bytes * element_bytes;
    const std::span<std::byte> elements = std::span(waiting).first(whole);
    check_and_swap(source_.path(), entry.name, entry.header, elements);
    if (whole > 0) take(elements);
    waiting.erase(waiting.begin(), waiting.begin() + static_cast<std::ptrdiff_t>(whole));
  });
}

}  // namespace holdfast::format
