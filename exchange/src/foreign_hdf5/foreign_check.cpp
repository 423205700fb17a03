// Checks an HDF5 file of another program before HDF5 parses it. HDF5 1.10 has memory-safety faults that a crafted
// file can reach. This check finds most crafted files in code whose every read is checked against the file's end.
//
// The structures are those of the HDF5 File Format Specification, version 3.0. Reasons: docs/decisions/exchange.md.

#include "foreign_hdf5/foreign_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bytes/little_endian_cursor.h"
#include "foreign_hdf5/foreign_rules.h"
#include "foreign_hdf5/tree_names.h"
#include "holdfast/base/error.h"
#include "holdfast/base/shape_bytes.h"

namespace holdfast::format {
namespace {

constexpr std::uint64_t kUndefined = ~std::uint64_t{0};
constexpr std::size_t kAddressBytes = 8;

[[noreturn]] void refuse(const std::string& problem) {
  throw Error(ErrorCode::invalid_file, printable(problem));
}

void require(bool condition, const std::string& problem) {
  if (!condition) refuse(problem);
}

// A range of the file that is read from start to end.
class Cursor : public LittleEndianCursor {
 public:
  using LittleEndianCursor::LittleEndianCursor;

  std::uint64_t address() { return integer(kAddressBytes); }
  // Consumes the signature's bytes if there are enough, whether they match or not.
  bool has_signature(std::string_view signature) {
    return left() >= signature.size() && text(signature.size()) == signature;
  }

 private:
  [[noreturn]] void refuse_end() const override { refuse("one of its structures ends too early"); }
};

// Types of messages in object headers.
// Other types say nothing that leads to other objects or needs memory, so they are passed over.
enum MessageType : std::uint64_t {
  kDataspace = 1,
  kDatatype = 3,
  kLink = 6,
  kExternalFiles = 7,
  kLayout = 8,
  kFilters = 11,
  kContinuation = 16,
  kSymbolTable = 17,
};

constexpr std::uint64_t kSharedMessage = 2;  // flag: the message refers to one that is stored elsewhere

// What the messages of one header declare about a dataset.
// Both may lie in any block of the header, in any order.
struct Declared {
  std::optional<std::uint64_t> elements;
  std::optional<std::uint64_t> element_bytes;
};

// Walks the objects of one file without recursion. Each step is bounded by the size of the file or by the limits.
class Check {
 public:
  Check(std::span<const std::byte> file, const TreeLimits& limits, TreeDemand demand)
      : file_(file), limits_(limits), needs_all_(demand == TreeDemand::whole) {}

  void run() {
    add_object("", check_superblock());
    // A list of what waits, instead of recursion: groups may be nested as deep as the file is long.
    while (!waiting_.empty()) {
      const auto [path, address] = std::move(waiting_.back());
      waiting_.pop_back();
      check_object(path, address);
    }
  }

 private:
  // All addresses count from the superblock, as they do in the file.
  std::uint64_t room_at(std::uint64_t address) const {
    const std::uint64_t room = file_.size() - base_;
    return address <= room ? room - address : 0;
  }

  // The fixed head of a structure.
  Cursor head_at(std::uint64_t address, std::uint64_t bytes) const {
    const bool is_inside = address <= file_.size() - base_ && bytes <= room_at(address);
    require(is_inside, "its structures point outside the file");
    return Cursor(file_.subspan(base_ + address, bytes));
  }

  // The body of a structure, whose length the file declares. In an honest file no byte belongs to two structures.
  // Without this sum, each of many structures could claim the whole file.
  Cursor body_at(std::uint64_t address, std::uint64_t bytes) {
    const Cursor body = head_at(address, bytes);
    body_bytes_ += bytes;
    require(body_bytes_ <= file_.size(), "its structures overlap");
    return body;
  }

  // In an honest file each structure has one owner. Without this check a loop would never end.
  void visit(std::uint64_t address) { require(visited_.insert(address).second, "its structures form a loop"); }

  // The signature may be at 0, 512, 1024 and so on, after bytes that other programs may use (the user block).
  std::uint64_t find_superblock() const {
    constexpr std::string_view kSignature = "\x89HDF\r\n\x1a\n";
    for (std::uint64_t offset = 0; offset < file_.size(); offset = offset == 0 ? 512 : 2 * offset) {
      if (Cursor(file_.subspan(offset)).has_signature(kSignature)) return offset;
    }
    refuse("it is not an HDF5 file (no signature)");
  }

  // Returns the address of the root's object header.
  std::uint64_t check_superblock() {
    base_ = find_superblock();
    Cursor cursor(file_.subspan(base_));
    cursor.bytes(8);
    const std::uint64_t version = cursor.integer(1);
    require(version <= 3, fmt::format("its superblock has version {}, and only 0 to 3 are supported", version));
    return version <= 1 ? check_old_superblock(cursor, version) : check_new_superblock(cursor);
  }

  // Versions 0 and 1 have the root's entry in the superblock itself.
  std::uint64_t check_old_superblock(Cursor& cursor, std::uint64_t version) {
    cursor.bytes(4);
    check_sizes(cursor);
    cursor.bytes(version == 0 ? 9 : 13);
    const std::uint64_t declared_base = cursor.address();
    cursor.address();  // free space
    check_end(declared_base, cursor.address());
    require(cursor.address() == kUndefined, "it is one part of a file that is split into several");
    cursor.address();  // of the root's name
    return cursor.address();
  }

  std::uint64_t check_new_superblock(Cursor& cursor) {
    check_sizes(cursor);
    cursor.bytes(1);
    const std::uint64_t declared_base = cursor.address();
    // The extension may be absent. HDF5 reads it first, so its address must be in the file.
    const std::uint64_t extension = cursor.address();
    require(extension == kUndefined || room_at(extension) > 0, "its structures point outside the file");
    check_end(declared_base, cursor.address());
    return cursor.address();
  }

  static void check_sizes(Cursor& cursor) {
    const std::uint64_t offset_bytes = cursor.integer(1);
    const std::uint64_t length_bytes = cursor.integer(1);
    require(offset_bytes == kAddressBytes && length_bytes == kAddressBytes,
            fmt::format("it has offsets of {} bytes and lengths of {} bytes, and only 8 bytes each are supported",
                        offset_bytes, length_bytes));
  }

  // After the file was written, a program may have put bytes in front of the superblock or cut some off.
  void check_end(std::uint64_t declared_base, std::uint64_t end) const {
    require(declared_base <= end, "its declared end lies before its start");
    const std::uint64_t present = file_.size() - base_;
    require(end - declared_base <= present,
            fmt::format("it was cut off: it has {} bytes, and its superblock says {}", present, end - declared_base));
  }

  void add_object(const std::string& path, std::uint64_t address) {
    require(objects_.insert(address).second, label_of(path) + kSecondName);
    require(objects_.size() <= limits_.max_objects, fmt::format("it has more than {} objects", limits_.max_objects));
    name_bytes_ += path.size();
    // A path repeats the names of all groups above, so paths may be longer than the file's own names.
    require(name_bytes_ <= 4 * file_.size() + (1U << 20U), "its names take more bytes than the file can hold");
    waiting_.emplace_back(path, address);
  }

  // Checks a link and queues its object. Soft and external links could lead anywhere, so only hard ones pass.
  void add_link(const std::string& group, const std::string& name, bool is_hard, std::uint64_t address) {
    const std::string path = group.empty() ? name : group + "/" + name;
    const std::string problem = problem_of_link(path, name, is_hard);
    require(!needs_all_ || problem.empty(), label_of(path) + problem);
    // Soft links and second names are left to the helper here.
    if (!needs_all_ && (!problem.empty() || objects_.contains(address))) return;
    add_object(path, address);
  }

  void check_object(const std::string& path, std::uint64_t address) {
    Declared declared;
    // Headers of version 2 have a signature. Those of version 1 start with their version number.
    if (head_at(address, 4).has_signature("OHDR")) {
      check_new_header(path, address, declared);
    } else {
      check_old_header(path, address, declared);
    }
    // A group declares neither.
    // The rest is for datasets alone.
    if (!declared.elements || !declared.element_bytes || !needs_all_) return;
    std::uint64_t bytes = 0;
    const bool is_countable = !__builtin_mul_overflow(*declared.elements, *declared.element_bytes, &bytes);
    require(is_countable, fmt::format("{} is too large for a 64-bit size", label_of(path)));
    require(may_declare(bytes, file_.size()),
            fmt::format("{} declares {} bytes, but the file has only {}", label_of(path), bytes, file_.size()));
  }

  // A block of messages that is still to be read.
  struct Block {
    std::uint64_t address;
    std::uint64_t bytes;
  };

  void check_old_header(const std::string& path, std::uint64_t address, Declared& declared) {
    Cursor head = head_at(address, 16);
    require(head.integer(1) == 1, fmt::format("{} has an object header of an unsupported version", label_of(path)));
    head.bytes(7);
    std::vector<Block> blocks{{address + 16, head.integer(4)}};
    while (!blocks.empty()) {
      const Block block = blocks.back();
      blocks.pop_back();
      Cursor cursor = body_at(block.address, block.bytes);
      while (cursor.left() >= 8) {
        const std::uint64_t type = cursor.integer(2);
        const std::uint64_t bytes = cursor.integer(2);
        const std::uint64_t flags = cursor.integer(1);
        cursor.bytes(3);
        check_message(path, type, flags, Cursor(cursor.bytes(bytes)), declared, blocks);
      }
    }
  }

  void check_new_header(const std::string& path, std::uint64_t address, Declared& declared) {
    constexpr std::uint64_t kChecksumBytes = 4;
    constexpr std::uint64_t kMaxHeadBytes = 34;
    // The head has a variable length, and a small file may end within the longest one.
    const std::uint64_t available = std::min(room_at(address), kMaxHeadBytes);
    Cursor head = head_at(address, available);
    head.bytes(4);
    require(head.integer(1) == 2, fmt::format("{} has an object header of an unsupported version", label_of(path)));
    const std::uint64_t flags = head.integer(1);
    if ((flags & 0x20U) != 0) head.bytes(16);  // times
    if ((flags & 0x10U) != 0) head.bytes(4);   // limits of attribute storage
    const std::uint64_t bytes = head.integer(std::size_t{1} << (flags & 3U));
    // Continuations begin with a signature and end with a checksum. The messages of the first block have neither.
    std::vector<Block> blocks{{address + available - head.left(), bytes}};
    for (bool is_first = true; !blocks.empty(); is_first = false) {
      const Block block = blocks.back();
      blocks.pop_back();
      Cursor cursor = body_at(block.address, block.bytes);
      if (!is_first) {
        require(cursor.has_signature("OCHK") && cursor.left() >= kChecksumBytes,
                fmt::format("{} has an incomplete object header", label_of(path)));
        cursor = Cursor(cursor.bytes(cursor.left() - kChecksumBytes));
      }
      check_new_messages(path, cursor, (flags & 4U) != 0, declared, blocks);
    }
  }

  void check_new_messages(const std::string& path, Cursor cursor, bool has_order, Declared& declared,
                          std::vector<Block>& blocks) {
    // Up to three bytes may be left: they are a gap, too small for a message.
    const std::size_t head_bytes = has_order ? 6 : 4;
    while (cursor.left() >= head_bytes) {
      const std::uint64_t type = cursor.integer(1);
      const std::uint64_t bytes = cursor.integer(2);
      const std::uint64_t flags = cursor.integer(1);
      if (has_order) cursor.bytes(2);
      check_message(path, type, flags, Cursor(cursor.bytes(bytes)), declared, blocks);
    }
  }

  void check_message(const std::string& path, std::uint64_t type, std::uint64_t flags, Cursor message,
                     Declared& declared, std::vector<Block>& blocks) {
    // A shared message is stored elsewhere: the helper checks it when HDF5 has found it.
    if ((flags & kSharedMessage) != 0) return;
    switch (type) {
      case kDataspace:
        return needs_all_ ? check_dataspace(path, message, declared) : void();
      case kDatatype:
        message.bytes(4);
        declared.element_bytes = message.integer(4);
        return;
      case kLink:
        return check_link(path, message);
      case kExternalFiles:
        if (!needs_all_) return;
        refuse(label_of(path) + kStoredOutside);
      case kLayout:
        return needs_all_ ? check_layout(path, message) : void();
      case kFilters:
        return needs_all_ ? check_filters(path, message) : void();
      case kContinuation: {
        const std::uint64_t address = message.address();
        visit(address);
        blocks.push_back({address, message.integer(8)});
        return;
      }
      case kSymbolTable: {
        const std::uint64_t tree = message.address();
        return check_symbols(path, tree, message.address());
      }
      default:
        return;
    }
  }

  static void check_dataspace(const std::string& path, Cursor& message, Declared& declared) {
    const std::uint64_t version = message.integer(1);
    const std::uint64_t axes = message.integer(1);
    message.bytes(version == 1 ? 6 : 2);
    require((version == 1 || version == 2) && axes <= kMaxAxes,
            fmt::format("{} has an unsupported shape", label_of(path)));
    std::vector<std::uint64_t> shape;
    for (std::uint64_t axis = 0; axis < axes; ++axis) shape.push_back(message.integer(8));
    std::uint64_t elements = 0;
    require(multiply_shape(shape, 1, elements), fmt::format("{} is too large for a 64-bit size", label_of(path)));
    declared.elements = elements;
  }

  static void check_layout(const std::string& path, Cursor& message) {
    constexpr std::uint64_t kVirtualClass = 3;
    const std::uint64_t version = message.integer(1);
    if (version < 3) message.bytes(1);  // number of axes
    require(message.integer(1) != kVirtualClass, label_of(path) + kVirtual);
  }

  static void check_filters(const std::string& path, Cursor& message) {
    constexpr std::uint64_t kFirstNamed = 256;  // in version 2, filters below this number have no name
    const std::uint64_t version = message.integer(1);
    const std::uint64_t count = message.integer(1);
    require(version == 1 || version == 2,
            fmt::format("{} has a filter list of an unsupported version", label_of(path)));
    if (version == 1) message.bytes(6);
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t number = message.integer(2);
      require(is_known_filter(static_cast<int>(number)), label_of(path) + unknown_filter(static_cast<int>(number)));
      const std::uint64_t name_bytes = version == 1 || number >= kFirstNamed ? message.integer(2) : 0;
      message.bytes(2);
      const std::uint64_t values = message.integer(2);
      message.bytes(version == 1 ? (name_bytes + 7) / 8 * 8 : name_bytes);
      message.bytes(4 * values);
      if (version == 1 && values % 2 == 1) message.bytes(4);
    }
  }

  void check_link(const std::string& group, Cursor& message) {
    message.bytes(1);
    const std::uint64_t flags = message.integer(1);
    const std::uint64_t type = (flags & 8U) != 0 ? message.integer(1) : 0;
    if ((flags & 4U) != 0) message.bytes(8);     // order of creation
    if ((flags & 0x10U) != 0) message.bytes(1);  // characters
    const std::string name = message.text(message.integer(std::size_t{1} << (flags & 3U)));
    add_link(group, name, type == 0, type == 0 ? message.address() : kUndefined);
  }

  // Reads the names of an old group: a heap of names, and a tree whose leaves are symbol tables.
  void check_symbols(const std::string& group, std::uint64_t tree, std::uint64_t heap) {
    visit(heap);
    Cursor head = head_at(heap, 32);
    require(head.has_signature("HEAP"), fmt::format("{} has no heap of names", label_of(group)));
    head.bytes(4);
    const std::uint64_t names_bytes = head.integer(8);
    head.bytes(8);
    const std::uint64_t names = head.address();
    // Counts the names once for the whole group; symbol_name then looks into them freely.
    body_at(names, names_bytes);
    std::vector<std::uint64_t> nodes{tree};
    while (!nodes.empty()) {
      const std::uint64_t node = nodes.back();
      nodes.pop_back();
      visit(node);
      if (head_at(node, 4).has_signature("SNOD")) {
        check_symbol_node(group, node, names, names_bytes);
      } else {
        check_tree_node(group, node, nodes);
      }
    }
  }

  void check_tree_node(const std::string& group, std::uint64_t node, std::vector<std::uint64_t>& nodes) {
    Cursor head = head_at(node, 24);
    require(head.has_signature("TREE") && head.integer(1) == 0,
            fmt::format("{} has no index of its links", label_of(group)));
    head.bytes(1);
    const std::uint64_t entries = head.integer(2);
    Cursor cursor = body_at(node + 24, entries * 16);
    for (std::uint64_t i = 0; i < entries; ++i) {
      cursor.bytes(8);  // key
      nodes.push_back(cursor.address());
    }
  }

  void check_symbol_node(const std::string& group, std::uint64_t node, std::uint64_t names, std::uint64_t names_bytes) {
    constexpr std::uint64_t kEntryBytes = 40;
    constexpr std::uint64_t kSoftLink = 2;
    Cursor head = head_at(node, 8);
    head.bytes(6);
    const std::uint64_t count = head.integer(2);
    Cursor cursor = body_at(node + 8, count * kEntryBytes);
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t name = cursor.integer(8);
      const std::uint64_t address = cursor.address();
      const std::uint64_t kind = cursor.integer(4);
      cursor.bytes(20);
      add_link(group, symbol_name(group, names, names_bytes, name), kind != kSoftLink, address);
    }
  }

  std::string symbol_name(const std::string& group, std::uint64_t names, std::uint64_t names_bytes,
                          std::uint64_t offset) {
    require(offset < names_bytes, fmt::format("{} has a link without a name", label_of(group)));
    // A name ends with NUL. One that is too long is cut here and then refused for its length.
    const std::uint64_t room = std::min<std::uint64_t>(names_bytes - offset, kMaxTreePathBytes + 1);
    const std::span<const std::byte> bytes = file_.subspan(base_ + names + offset, room);
    const auto end = std::find(bytes.begin(), bytes.end(), std::byte{0});
    return {reinterpret_cast<const char*>(bytes.data()), static_cast<std::size_t>(end - bytes.begin())};
  }

  std::span<const std::byte> file_;
  const TreeLimits& limits_;
  const bool needs_all_;
  std::uint64_t base_ = 0;
  std::uint64_t body_bytes_ = 0;
  std::uint64_t name_bytes_ = 0;
  std::set<std::uint64_t> visited_;  // all structures but object headers
  std::set<std::uint64_t> objects_;  // object headers that a link names
  std::vector<std::pair<std::string, std::uint64_t>> waiting_;
};

}  // namespace

void check_foreign_hdf5(std::span<const std::byte> file, const TreeLimits& limits, TreeDemand demand) {
  Check(file, limits, demand).run();
}

}  // namespace holdfast::format
