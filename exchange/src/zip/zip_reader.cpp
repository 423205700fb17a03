// Reads ZIP archives that anybody may have written. ZIP says most things twice: in the directory at the archive's end
// and in front of each member. Readers that trust different copies see different archives, so here both must agree.
// All sizes are checked against the file before memory is allocated for them.

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <limits>
#include <set>

#include "holdfast/base/error.h"
#include "zip/inflate.h"
#include "zip/zip.h"
#include "zip/zip_records.h"

namespace holdfast::format {
namespace {

constexpr std::uint64_t kPieceBytes = std::uint64_t{1} << 20;
constexpr std::size_t kMaxCommentBytes = 0xFFFF;

// An archive may claim more than this only if it holds at least a hundredth of what it claims.
constexpr std::uint64_t kFreeBytes = std::uint64_t{4} << 30;
constexpr std::uint64_t kMaxRatio = 100;
// Deflate expands no byte to more than 1032.
constexpr std::uint64_t kMaxDeflateRatio = 1032;

constexpr const char* kUseAnotherCopy = "; use another copy of it";

// True for content that expands beyond all honest use: an attack on memory.
bool is_bomb(std::uint64_t bytes, std::uint64_t stored_bytes) {
  return bytes > kFreeBytes && bytes / kMaxRatio > stored_bytes;
}

// The position of the directory, according to the records at the archive's end.
struct Directory {
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;
  std::uint64_t offset = 0;
  std::uint64_t end = 0;  // where the record after it begins
};

// A directory entry. Numbers from ZIP64's extra field have replaced the 32-bit ones.
struct Listed {
  ZipEntry entry;
  std::uint16_t flags = 0;
  std::uint16_t method = 0;
  std::uint64_t header_offset = 0;
};

// The bytes of the archive that one member occupies, with its header and its data descriptor.
struct Extent {
  std::uint64_t begin;
  std::uint64_t end;
};

// Parses all records of an archive once, and keeps nothing but the members.
class Parser {
 public:
  explicit Parser(ByteSource& source) : source_(source), path_(source.path()) {}

  std::vector<ZipEntry> parse() {
    const Directory directory = find_directory();
    std::vector<std::byte> bytes(directory.bytes);
    source_.read(directory.offset, bytes);
    ByteCursor cursor(path_, "the directory of its members", bytes);
    std::vector<ZipEntry> entries;
    // Members are not sorted in an archive, so names are compared through a set.
    std::set<std::string> names;
    std::vector<Extent> extents;
    for (std::uint64_t i = 0; i < directory.entries; ++i) {
      Listed listed = read_entry(cursor);
      // Readers would choose different ones of two members with one name.
      if (!names.insert(listed.entry.name).second) refuse(listed, "occurs twice");
      extents.push_back(locate(listed));
      check(listed);
      if (is_folder(listed)) continue;
      entries.push_back(std::move(listed.entry));
    }
    // Bytes after the last entry would be content that only some readers see.
    require(cursor.left() == 0, "its directory has bytes after its last entry");
    check_extents(extents, directory.offset);
    check_sum(entries);
    return entries;
  }

 private:
  [[noreturn]] void damaged(const std::string& problem) const {
    refuse_file(path_, fmt::format("is damaged: {}{}", problem, kUseAnotherCopy));
  }
  void require(bool condition, const char* problem) const {
    if (!condition) damaged(problem);
  }
  [[noreturn]] void refuse(const Listed& listed, const std::string& problem) const {
    damaged(fmt::format("its member {} {}", quoted_text(listed.entry.name), problem));
  }
  void require(bool condition, const Listed& listed, const char* problem) const {
    if (!condition) refuse(listed, problem);
  }
  [[noreturn]] void unsupported(const std::string& problem) const {
    throw Error(ErrorCode::unsupported, fmt::format("{} {}", path_, problem));
  }

  std::vector<std::byte> read(std::uint64_t offset, std::size_t bytes) const {
    std::vector<std::byte> result(bytes);
    source_.read(offset, result);
    return result;
  }

  // A comment may follow the record at the end. Record and comment may reach exactly to the end of the file from
  // several positions. The last of these is used.
  Directory find_directory() const {
    const std::uint64_t size = source_.size_bytes();
    const auto tail_bytes = static_cast<std::size_t>(std::min<std::uint64_t>(size, zip::kEndBytes + kMaxCommentBytes));
    const std::vector<std::byte> tail = read(size - tail_bytes, tail_bytes);
    for (std::size_t at = tail_bytes; at-- > 0;) {
      const std::size_t left = tail_bytes - at;
      if (left < zip::kEndBytes) continue;
      ByteCursor cursor(path_, "the record at its end", std::span(tail).subspan(at));
      if (cursor.u32() == zip::kEnd && comment_fits(std::span(tail).subspan(at))) {
        return read_end(cursor, size - left);
      }
    }
    refuse_file(path_, std::string("is not a ZIP archive, or its end was cut off") + kUseAnotherCopy);
  }

  bool comment_fits(std::span<const std::byte> end) const {
    ByteCursor cursor(path_, "the record at its end", end.subspan(zip::kEndBytes - 2));
    return cursor.u16() == cursor.left();
  }

  // `cursor` has passed the signature of the record at `offset`.
  Directory read_end(ByteCursor cursor, std::uint64_t offset) const {
    // Volumes are from the time of floppy disks. ZIP64 puts all ones here.
    const std::uint16_t disk = cursor.u16();
    const std::uint16_t directory_disk = cursor.u16();
    const std::uint16_t entries_here = cursor.u16();
    Directory directory;
    directory.entries = cursor.u16();
    directory.bytes = cursor.u32();
    directory.offset = cursor.u32();
    // For now the directory must end where this record begins; ZIP64 adds records in between.
    directory.end = offset;
    if (disk != directory_disk || entries_here != directory.entries || (disk != 0 && disk != zip::kFull16)) {
      unsupported("is a ZIP archive in several volumes; join them into one");
    }
    apply_end64(directory);
    require(directory.offset <= directory.end && directory.bytes == directory.end - directory.offset,
            "its directory is not where the record at its end says");
    return directory;
  }

  // Some writers add ZIP64's records only where 32 bits are too few, others always. Where both records have a number,
  // the two must agree.
  void apply_end64(Directory& directory) const {
    if (directory.end < zip::kEnd64LocatorBytes) return;
    const std::uint64_t locator_offset = directory.end - zip::kEnd64LocatorBytes;
    const std::vector<std::byte> locator_bytes = read(locator_offset, zip::kEnd64LocatorBytes);
    ByteCursor locator(path_, "its ZIP64 locator", locator_bytes);
    if (locator.u32() != zip::kEnd64Locator) return;
    const std::uint32_t disk = locator.u32();
    const std::uint64_t end64_offset = locator.u64();
    if (disk != 0 || locator.u32() > 1) unsupported("is a ZIP archive in several volumes; join them into one");
    require(locator_offset >= zip::kEnd64Bytes && end64_offset <= locator_offset - zip::kEnd64Bytes,
            "its ZIP64 record is not where its locator says");
    const std::vector<std::byte> end64_bytes = read(end64_offset, zip::kEnd64Bytes);
    ByteCursor end64(path_, "its ZIP64 record", end64_bytes);
    require(end64.u32() == zip::kEnd64, "its ZIP64 record is not where its locator says");
    require(end64.u64() == locator_offset - end64_offset - 12,
            "its ZIP64 record does not have the length that it says");
    end64.bytes(2 + 2 + 4 + 4);  // versions and volumes
    const std::uint64_t entries_here = end64.u64();
    const Directory wide{.entries = end64.u64(), .bytes = end64.u64(), .offset = end64.u64(), .end = end64_offset};
    require(entries_here == wide.entries, "its ZIP64 record has two different counts of members");
    require(agree(directory.entries, zip::kFull16, wide.entries) && agree(directory.bytes, zip::kFull32, wide.bytes) &&
                agree(directory.offset, zip::kFull32, wide.offset),
            "the two records at its end disagree");
    directory = wide;
  }

  // True if a narrow field says nothing (all bits are ones) or the same as the wide one.
  static bool agree(std::uint64_t narrow, std::uint64_t full, std::uint64_t wide) {
    return narrow == full || narrow == wide;
  }

  Listed read_entry(ByteCursor& cursor) const {
    require(cursor.u32() == zip::kDirectoryEntry, "an entry of its directory has a wrong signature");
    Listed listed;
    cursor.bytes(2 + 2);  // versions
    listed.flags = cursor.u16();
    listed.method = cursor.u16();
    cursor.bytes(2 + 2);  // time and date
    listed.entry.crc = cursor.u32();
    listed.entry.stored_bytes = cursor.u32();
    listed.entry.size_bytes = cursor.u32();
    const std::uint16_t name_bytes = cursor.u16();
    const std::uint16_t extra_bytes = cursor.u16();
    const std::uint16_t comment_bytes = cursor.u16();
    cursor.bytes(2 + 2 + 4);  // volume, attributes
    listed.header_offset = cursor.u32();
    listed.entry.name = cursor.text(name_bytes);
    const auto extra = cursor.bytes(extra_bytes);
    cursor.bytes(comment_bytes);
    check_name(listed);
    apply_extra(listed, extra, {&listed.entry.size_bytes, &listed.entry.stored_bytes, &listed.header_offset});
    return listed;
  }

  // The name of a folder ends with a slash, which is not an empty part.
  void check_name(const Listed& listed) const {
    std::string name = listed.entry.name;
    if (name.ends_with('/')) name.pop_back();
    const std::string problem = problem_of_member_name(name);
    if (!problem.empty())
      refuse_file(
          path_,
          fmt::format("is refused: the name {} of a member {}; write the archive again with plain relative names",
                      quoted_text(name), problem));
  }

  // The ZIP64 field holds, in order, 64-bit values for those of `fields` whose 32 bits are all ones.
  void apply_extra(const Listed& listed, std::span<const std::byte> extra,
                   std::initializer_list<std::uint64_t*> fields) const {
    ByteCursor cursor(path_, "the extra field of a member", extra);
    bool is_found = false;
    // Some writers leave up to three bytes of padding at the end.
    while (cursor.left() >= 4) {
      const std::uint16_t kind = cursor.u16();
      const std::uint16_t bytes = cursor.u16();
      ByteCursor field(path_, "the extra field of a member", cursor.bytes(bytes));
      if (kind != zip::kExtra64) continue;
      require(!is_found, listed, "has two ZIP64 fields");
      is_found = true;
      for (std::uint64_t* number : fields) {
        if (*number == zip::kFull32) *number = field.u64();
      }
    }
  }

  static bool is_folder(const Listed& listed) { return listed.entry.name.ends_with('/'); }

  void check(const Listed& listed) const {
    const ZipEntry& entry = listed.entry;
    if (listed.method == zip::kStored) {
      require(entry.size_bytes == entry.stored_bytes, listed, "is stored uncompressed, but its two sizes differ");
    }
    // The content of a folder would be dropped in silence.
    require(!is_folder(listed) || entry.size_bytes == 0, listed, "is a folder with content");
    require(entry.size_bytes / kMaxDeflateRatio <= entry.stored_bytes, listed,
            "claims more bytes than its compressed form can hold");
    if (is_bomb(entry.size_bytes, entry.stored_bytes)) {
      refuse_file(path_, fmt::format("is refused: its member {} would grow from {} to {} bytes; if you trust it, write "
                                     "it again without compression",
                                     quoted_text(entry.name), entry.stored_bytes, entry.size_bytes));
    }
  }

  // Reads the local header and the data descriptor. Both must agree with the directory.
  Extent locate(Listed& listed) const {
    ZipEntry& entry = listed.entry;
    check_kind(listed);
    const std::uint64_t size = source_.size_bytes();
    require(listed.header_offset <= size && size - listed.header_offset >= zip::kLocalHeaderBytes, listed,
            "lies outside the file");
    const std::vector<std::byte> head_bytes = read(listed.header_offset, zip::kLocalHeaderBytes);
    ByteCursor head(path_, "the header of a member", head_bytes);
    require(head.u32() == zip::kLocalHeader, listed, "does not begin where the directory says");
    head.bytes(2);  // version
    require(head.u16() == listed.flags && head.u16() == listed.method, listed,
            "has a header that differs from its directory entry");
    head.bytes(2 + 2);  // time and date
    const std::uint32_t crc = head.u32();
    std::uint64_t stored_bytes = head.u32();
    std::uint64_t size_bytes = head.u32();
    const std::uint16_t name_bytes = head.u16();
    const std::uint16_t extra_bytes = head.u16();
    // Name and extra field have their own lengths here, which decide where the content begins.
    const std::uint64_t rest_offset = listed.header_offset + zip::kLocalHeaderBytes;
    const std::size_t rest_size = std::size_t{name_bytes} + extra_bytes;
    require(size - rest_offset >= rest_size, listed, "lies outside the file");
    const std::vector<std::byte> rest_bytes = read(rest_offset, rest_size);
    ByteCursor rest(path_, "the header of a member", rest_bytes);
    require(rest.text(name_bytes) == entry.name, listed, "has a different name in its header");
    const bool has_descriptor = (listed.flags & zip::kDescriptorFlag) != 0;
    // With a data descriptor the header may have zeros here, because the sizes were unknown when it was written.
    if (!has_descriptor) {
      apply_extra(listed, rest.bytes(extra_bytes), {&size_bytes, &stored_bytes});
      require(crc == entry.crc && stored_bytes == entry.stored_bytes && size_bytes == entry.size_bytes, listed,
              "has a header that differs from its directory entry");
    }
    entry.data_offset = rest_offset + rest_size;
    require(size - entry.data_offset >= entry.stored_bytes, listed, "lies outside the file");
    entry.is_deflated = listed.method == zip::kDeflated;
    const std::uint64_t end = entry.data_offset + entry.stored_bytes;
    return {.begin = listed.header_offset, .end = has_descriptor ? end_of_descriptor(listed, end) : end};
  }

  void check_kind(const Listed& listed) const {
    if ((listed.flags & zip::kEncryptedFlag) != 0) {
      unsupported(fmt::format("has an encrypted member {}; decrypt it first", quoted_text(listed.entry.name)));
    }
    // Any other flag means content that this reader would misunderstand, such as a patch or a masked header.
    constexpr std::uint16_t kKnown = zip::kDescriptorFlag | zip::kUtf8Flag | zip::kEffortFlags;
    if ((listed.flags & ~kKnown) != 0 || (listed.method != zip::kStored && listed.method != zip::kDeflated)) {
      unsupported(
          fmt::format("has a member {} with flags {} and compression method {}; write the archive again with stored or "
                      "deflated members",
                      quoted_text(listed.entry.name), listed.flags, listed.method));
    }
  }

  // A data descriptor may have a signature, and its sizes may have 32 or 64 bits. Nothing in the archive says which,
  // so each form is tried.
  std::uint64_t end_of_descriptor(const Listed& listed, std::uint64_t offset) const {
    const ZipEntry& entry = listed.entry;
    for (const bool has_signature : {true, false}) {
      for (const bool is_wide : {false, true}) {
        const std::size_t bytes = (has_signature ? 4 : 0) + 4 + (is_wide ? 16 : 8);
        if (source_.size_bytes() - offset < bytes) continue;
        const std::vector<std::byte> record = read(offset, bytes);
        ByteCursor cursor(path_, "the data descriptor of a member", record);
        if (has_signature && cursor.u32() != zip::kDataDescriptor) continue;
        if (cursor.u32() != entry.crc) continue;
        const std::uint64_t stored_bytes = is_wide ? cursor.u64() : cursor.u32();
        const std::uint64_t size_bytes = is_wide ? cursor.u64() : cursor.u32();
        if (stored_bytes == entry.stored_bytes && size_bytes == entry.size_bytes) return offset + bytes;
      }
    }
    refuse(listed, "has a data descriptor that differs from its directory entry");
  }

  // Archives that expand without limit count the same bytes for many members, so members must not overlap.
  void check_extents(std::vector<Extent>& extents, std::uint64_t directory_offset) const {
    std::sort(extents.begin(), extents.end(), [](const Extent& a, const Extent& b) { return a.begin < b.begin; });
    std::uint64_t end = 0;
    for (const Extent& extent : extents) {
      require(extent.begin >= end, "two of its members overlap");
      end = extent.end;
    }
    require(end <= directory_offset, "a member reaches into its directory");
  }

  void check_sum(const std::vector<ZipEntry>& entries) const {
    std::uint64_t sum = 0;
    for (const ZipEntry& entry : entries) {
      // A sum beyond 64 bits is refused below, like any other that is too large.
      if (__builtin_add_overflow(sum, entry.size_bytes, &sum)) sum = std::numeric_limits<std::uint64_t>::max();
    }
    if (is_bomb(sum, source_.size_bytes())) {
      refuse_file(path_, fmt::format("is refused: its members would grow from {} to {} bytes; if you trust it, write "
                                     "it again without compression",
                                     source_.size_bytes(), sum));
    }
  }

  ByteSource& source_;
  const std::string& path_;
};

[[noreturn]] void refuse_content(const ByteSource& source, const ZipEntry& entry, const std::string& problem) {
  refuse_file(source.path(),
              fmt::format("is damaged: its member {} {}{}", quoted_text(entry.name), problem, kUseAnotherCopy));
}

}  // namespace

ZipReader::ZipReader(ByteSource& source) : source_(source), entries_(Parser(source).parse()) {}

bool ZipReader::feed(const ZipEntry& entry, const std::function<bool(std::span<const std::byte>)>& take) const {
  // `take` may stop the reading (read_start); that is not damage. So the two reasons to stop are kept apart.
  bool is_wanted = true;
  Inflater inflater(entry.is_deflated ? entry.size_bytes : 0, kPieceBytes,
                    [&](std::span<const std::byte> piece) { return is_wanted = take(piece); });
  std::vector<std::byte> stored(std::min(entry.stored_bytes, kPieceBytes));
  bool is_good = true;
  for (std::uint64_t done = 0; done < entry.stored_bytes && is_wanted && is_good; done += stored.size()) {
    stored.resize(std::min(entry.stored_bytes - done, kPieceBytes));
    source_.read(entry.data_offset + done, stored);
    if (entry.is_deflated) {
      is_good = inflater.feed(stored);
    } else {
      is_wanted = take(stored);
    }
  }
  if (!is_wanted) return false;
  if (entry.is_deflated && !(is_good && inflater.is_complete())) {
    refuse_content(source_, entry, fmt::format("does not decompress to its {} bytes", entry.size_bytes));
  }
  return true;
}

void ZipReader::read_pieces(const ZipEntry& entry, const std::function<void(std::span<const std::byte>)>& take) const {
  uLong crc = crc32_z(0, nullptr, 0);
  feed(entry, [&](std::span<const std::byte> piece) {
    crc = crc32_z(crc, reinterpret_cast<const Bytef*>(piece.data()), piece.size());
    take(piece);
    return true;
  });
  // By now `take` has seen all pieces: callers must not act on them before this function returns.
  if (static_cast<std::uint32_t>(crc) != entry.crc) refuse_content(source_, entry, "does not match its CRC-32");
}

void ZipReader::read_into(const ZipEntry& entry, std::span<std::byte> out) const {
  HOLDFAST_ASSERT(out.size() == entry.size_bytes);
  read_pieces(entry, [&](std::span<const std::byte> piece) {
    std::copy(piece.begin(), piece.end(), out.begin());
    out = out.subspan(piece.size());
  });
}

// The size was compared with the stored bytes, so this allocation is bounded by the file.
std::vector<std::byte> ZipReader::read(const ZipEntry& entry) const {
  std::vector<std::byte> bytes(entry.size_bytes);
  read_into(entry, bytes);
  return bytes;
}

std::vector<std::byte> ZipReader::read_start(const ZipEntry& entry, std::size_t most) const {
  std::vector<std::byte> start;
  feed(entry, [&](std::span<const std::byte> piece) {
    const auto part = piece.first(std::min(piece.size(), most - start.size()));
    start.insert(start.end(), part.begin(), part.end());
    return start.size() < most;
  });
  return start;
}

}  // namespace holdfast::format
