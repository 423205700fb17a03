// The records between the helper process and this one. A crafted file may control the helper, so the decoder trusts
// nothing. Every length is checked against a bound that follows from the file's size, memory grows only with bytes
// that have arrived, and order and names are checked again. Reasons: docs/decisions/exchange.md.

#include "foreign_hdf5/tree_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "bytes/element_bytes.h"
#include "bytes/little_endian_cursor.h"
#include "foreign_hdf5/foreign_rules.h"
#include "foreign_hdf5/tree_names.h"
#include "holdfast/base/shape_bytes.h"
#include "holdfast/base/utf8.h"

namespace holdfast::format {
namespace {

// These numbers are the protocol of tree_stream.h, so a change of one needs a change there.
enum class Record : std::uint8_t {
  group = 1,
  dataset = 2,
  elements = 3,
  finished = 4,
  refused = 5,
  text = 6,
  unreadable = 7
};
enum class Value : std::uint8_t { text = 0, texts = 1, numbers = 2 };

// The position is the code. Both programs are built together, so the list may change with them.
constexpr std::array kDTypesByCode = {DType::f64, DType::f32, DType::f16,    DType::bf16, DType::i8,
                                      DType::i16, DType::i32, DType::i64,    DType::u8,   DType::u16,
                                      DType::u32, DType::u64, DType::boolean};
// Only these codes make sense for a refusal: the helper must not be able to claim any other failure.
constexpr std::array kCodes = {ErrorCode::invalid_file, ErrorCode::out_of_memory, ErrorCode::unsupported,
                               ErrorCode::unavailable};

// The most bytes that are received at once.
constexpr std::uint64_t kReceivedBytes = std::uint64_t{4} << 20;

// Encodes the payload of one record.
class PayloadWriter {
 public:
  void write_u8(std::uint8_t value) { bytes_.push_back(static_cast<std::byte>(value)); }
  void write_u32(std::size_t value) { write_integer(record_count(value)); }
  void write_u64(std::uint64_t value) { write_integer(value); }
  void write_text(std::string_view text) {
    write_u32(text.size());
    write_bytes(std::as_bytes(std::span(text)));
  }
  void write_bytes(std::span<const std::byte> bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }

  void write_numbers_head(const NamedArray& array) {
    const auto* dtype = std::find(kDTypesByCode.begin(), kDTypesByCode.end(), array.dtype);
    write_u8(static_cast<std::uint8_t>(dtype - kDTypesByCode.begin()));
    write_u8(static_cast<std::uint8_t>(array.shape.size()));
    for (const std::uint64_t extent : array.shape) write_u64(extent);
  }

  void write_attributes(const std::vector<Hdf5Attribute>& attributes) {
    write_u32(attributes.size());
    for (const Hdf5Attribute& attribute : attributes) {
      write_text(attribute.name);
      write_u8(static_cast<std::uint8_t>(attribute.value.index()));
      std::visit([&](const auto& value) { write_value(value); }, attribute.value);
    }
  }

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  void write_value(const std::string& text) { write_text(text); }
  void write_value(const std::vector<std::string>& texts) {
    write_u32(texts.size());
    for (const std::string& text : texts) write_text(text);
  }
  void write_value(const NamedArray& array) {
    write_numbers_head(array);
    write_bytes(array.bytes);
  }

  template <typename Integer>
  void write_integer(Integer value) {
    for (std::size_t i = 0; i < sizeof value; ++i) write_u8(static_cast<std::uint8_t>(value >> (8 * i)));
  }

  std::vector<std::byte> bytes_;
};

// The length precedes the payload, so that the receiver can refuse it before it allocates.
void write_record(const std::function<void(std::span<const std::byte>)>& write, Record kind,
                  std::span<const std::byte> payload) {
  PayloadWriter head;
  head.write_u8(static_cast<std::uint8_t>(kind));
  head.write_u64(payload.size());
  write(head.bytes());
  if (!payload.empty()) write(payload);
}

// Honest helpers never get here: the file has taken the helper over, or the two programs do not fit.
[[noreturn]] void refuse_records(const std::string& problem) {
  throw Error(ErrorCode::invalid_file,
              fmt::format("the program that reads HDF5 files sent invalid records ({})", problem));
}

void require_record(bool condition, const std::string& problem) {
  if (!condition) refuse_records(problem);
}

// Counts are not trusted as sizes: lists grow element by element, and end where the payload ends.
// Reads a payload that lies in memory completely. Everything that it returns is checked.
class PayloadReader : public LittleEndianCursor {
 public:
  using LittleEndianCursor::LittleEndianCursor;

  std::string read_text() {
    std::string content = text(u32());
    require_record(is_utf8(content), "a text is not UTF-8");
    return content;
  }

  // Reads type and shape. `elements_bytes` becomes the size of the elements.
  NamedArray read_numbers_head(std::uint64_t& elements_bytes) {
    const std::uint8_t dtype = u8();
    require_record(dtype < kDTypesByCode.size(), "an element type does not exist");
    NamedArray array{"", kDTypesByCode[dtype], std::vector<std::uint64_t>(u8()), {}};
    require_record(array.shape.size() <= kMaxAxes, "a shape has too many axes");
    for (std::uint64_t& extent : array.shape) extent = u64();
    require_record(multiply_shape(array.shape, size_bytes(array.dtype), elements_bytes),
                   "a shape is too large for a 64-bit size");
    return array;
  }

  std::vector<Hdf5Attribute> read_attributes() {
    const std::uint32_t count = u32();
    std::vector<Hdf5Attribute> attributes;
    for (std::uint32_t i = 0; i < count; ++i) {
      std::string name = read_text();
      require_record(!name.empty(), "an attribute has no name");
      require_record(attributes.empty() || attributes.back().name < name, "attributes are not sorted");
      attributes.push_back({std::move(name), {}});
      read_value(attributes.back());
    }
    return attributes;
  }

  void require_end() const { require_record(left() == 0, "a record is longer than its content"); }

 private:
  [[noreturn]] void refuse_end() const override { refuse_records("a record is shorter than its content"); }

  void read_value(Hdf5Attribute& attribute) {
    switch (static_cast<Value>(u8())) {
      case Value::text:
        attribute.value = read_text();
        return;
      case Value::texts:
        attribute.value = read_texts();
        return;
      case Value::numbers:
        attribute.value = read_numbers();
        return;
    }
    refuse_records("an attribute has an unknown kind");
  }

  std::vector<std::string> read_texts() {
    const std::uint32_t count = u32();
    std::vector<std::string> texts;
    for (std::uint32_t i = 0; i < count; ++i) texts.push_back(read_text());
    return texts;
  }

  NamedArray read_numbers() {
    std::uint64_t elements_bytes = 0;
    NamedArray array = read_numbers_head(elements_bytes);
    const std::span<const std::byte> elements = bytes(elements_bytes);
    array.bytes.assign(elements.begin(), elements.end());
    require_record(array.dtype != DType::boolean || holds_booleans(elements), "a boolean element is neither 0 nor 1");
    return array;
  }
};

// Builds a tree from records, and checks each record against those before it.
class TreeDecoder {
 public:
  TreeDecoder(RecordSource& source, std::uint64_t file_bytes, const TreeLimits& limits,
              const TreeDecodeOptions& options)
      : source_(source),
        options_(options),
        file_bytes_(file_bytes),
        max_objects_(limits.max_objects),
        room_for_elements_(max_declared_bytes(file_bytes, limits)),
        room_for_heads_(max_head_bytes(file_bytes)) {}

  // Reads until the record that says finished. A pipe that ends earlier is an exception of the source.
  Hdf5Tree decode() {
    while (decode_record()) continue;
    require_record(missing_elements_ == 0, "elements are missing");
    require_record(!tree_.groups.empty(), "there is no root");
    const bool is_complete = options_.announced == nullptr || tree_.datasets.size() == options_.announced->size();
    require_record(is_complete, "a dataset is missing that was announced");
    return std::move(tree_);
  }

 private:
  // Returns false at the end.
  bool decode_record() {
    // Kind and length, as write_record() writes them.
    std::array<std::byte, 9> head{};
    source_.read(head);
    PayloadReader reader(head);
    const auto kind = static_cast<Record>(reader.u8());
    const std::uint64_t bytes = reader.u64();
    if (kind == Record::elements) {
      decode_elements(bytes);
      return true;
    }
    // A refusal may come at any time. Everything else must wait until the latest dataset is complete.
    require_record(kind == Record::refused || missing_elements_ == 0, "elements are missing");
    const std::vector<std::byte> payload = read_payload(bytes);
    return decode_payload(kind, PayloadReader(payload));
  }

  bool decode_payload(Record kind, PayloadReader payload) {
    switch (kind) {
      case Record::group:
        decode_group(payload);
        return true;
      case Record::dataset:
        decode_dataset(payload);
        return true;
      case Record::text:
        decode_text(payload);
        return true;
      case Record::unreadable:
        decode_unreadable(payload);
        return true;
      case Record::finished:
        payload.require_end();
        return false;
      case Record::refused:
        decode_refusal(payload);
      case Record::elements:
        break;
    }
    refuse_records("a record has an unknown kind");
  }

  std::vector<std::byte> read_payload(std::uint64_t bytes) {
    // The payload is allocated as a whole, so its size is checked first.
    require_record(bytes <= room_for_heads_, "names, attributes and texts are larger than the file can hold");
    // The sum over all records is bounded, not only each of them.
    room_for_heads_ -= bytes;
    std::vector<std::byte> payload(bytes);
    source_.read(payload);
    return payload;
  }

  void decode_group(PayloadReader& payload) {
    Hdf5Group group{payload.read_text(), {}};
    if (tree_.groups.empty()) {
      require_record(group.path.empty(), "the root does not come first");
    } else {
      check_path(group.path);
      require_record(tree_.groups.back().path < group.path, "groups are not sorted");
      require_record(tree_.datasets.empty() && tree_.texts.empty(), "a group follows a dataset");
    }
    group.attributes = payload.read_attributes();
    payload.require_end();
    tree_.groups.push_back(std::move(group));
  }

  void decode_dataset(PayloadReader& payload) {
    // Order and kind are checked against what has arrived, since the tree promises both to its users.
    const std::string path = payload.read_text();
    check_path(path);
    require_record(tree_.datasets.empty() || tree_.datasets.back().array.name < path, "datasets are not sorted");
    require_record(tree_.texts.empty(), "a dataset follows a text");
    require_record(tree_.find_group(path) == nullptr, "a dataset is also a group");
    std::uint64_t bytes = 0;
    Hdf5Dataset dataset{payload.read_numbers_head(bytes), {}};
    dataset.array.name = path;
    require_record(is_announced(dataset.array), "a dataset is not the one that was announced");
    dataset.attributes = payload.read_attributes();
    payload.require_end();
    require_record(bytes <= room_for_elements_, "datasets are larger than the file can hold");
    // The sum over all datasets is bounded, since a crafted helper could announce any number of them.
    room_for_elements_ -= bytes;
    // With heads alone, no elements follow.
    missing_elements_ = options_.heads_only ? 0 : bytes;
    // Without the reservation the vector would double and copy. Where compression claims more than this, that price
    // is paid.
    const bool keeps_elements = !options_.heads_only && !options_.take;
    if (keeps_elements && bytes / 4 <= file_bytes_) dataset.array.bytes.reserve(bytes);
    tree_.datasets.push_back(std::move(dataset));
  }

  // By its place, so that a receiver of elements may trust their number.
  bool is_announced(const NamedArray& array) const {
    if (options_.announced == nullptr) return true;
    const std::size_t number = tree_.datasets.size();
    if (number == options_.announced->size()) return false;
    const NamedArray& head = (*options_.announced)[number];
    return array.name == head.name && array.dtype == head.dtype && array.shape == head.shape;
  }

  void decode_text(PayloadReader& payload) {
    Hdf5Text text{payload.read_text(), {}, {}};
    check_path(text.path);
    require_record(tree_.texts.empty() || tree_.texts.back().path < text.path, "texts are not sorted");
    // Lists of one kind are sorted, so duplicates within them are found by order; between kinds they need a search.
    const bool is_new = tree_.find_group(text.path) == nullptr && tree_.find_dataset(text.path) == nullptr;
    require_record(is_new, "a text is also a group or an array");
    text.text = payload.read_text();
    text.attributes = payload.read_attributes();
    payload.require_end();
    tree_.texts.push_back(std::move(text));
  }

  void decode_unreadable(PayloadReader& payload) {
    require_record(options_.is_partial, "an object was left out that was asked for");
    require_record(tree_.unreadable.size() < max_objects_, "there are too many objects");
    // Both texts go to a terminal, and the file may have written them.
    std::string path = printable(payload.read_text());
    tree_.unreadable.push_back({std::move(path), printable(payload.read_text())});
    payload.require_end();
  }

  // Memory grows with the elements that arrive, so a false claim costs nothing.
  void decode_elements(std::uint64_t bytes) {
    require_record(bytes > 0 && bytes <= missing_elements_, "more elements come than were announced");
    const DType dtype = tree_.datasets.back().array.dtype;
    require_record(bytes % size_bytes(dtype) == 0, "an element comes in two pieces");
    std::vector<std::byte>& elements = tree_.datasets.back().array.bytes;
    missing_elements_ -= bytes;
    while (bytes > 0) {
      // With `take` the buffer holds one piece at a time. Otherwise the array grows by what has arrived.
      const std::size_t known = options_.take ? 0 : elements.size();
      const std::uint64_t count = std::min(bytes, kReceivedBytes);
      elements.resize(known + count);
      const std::span<std::byte> piece = std::span(elements).subspan(known);
      source_.read(piece);
      require_record(dtype != DType::boolean || holds_booleans(piece), "a boolean element is neither 0 nor 1");
      if (options_.take) options_.take(tree_.datasets.size() - 1, piece);
      bytes -= count;
    }
    // The buffer has served its purpose. The tree's arrays must have no bytes.
    if (options_.take && missing_elements_ == 0) std::vector<std::byte>().swap(elements);
  }

  void check_path(const std::string& path) const {
    // The helper checks all of this, too. It may be under the file's control, so its word does not count.
    const std::size_t objects = tree_.groups.size() + tree_.datasets.size() + tree_.texts.size();
    require_record(objects < max_objects_, "there are too many objects");
    require_record(problem_of_path(path).empty(), "a path is not valid");
    const std::size_t slash = path.rfind('/');
    const std::string_view parent = slash == std::string::npos ? "" : std::string_view(path).substr(0, slash);
    require_record(tree_.find_group(parent) != nullptr, "a path names a group that is missing");
  }

  [[noreturn]] static void decode_refusal(PayloadReader& payload) {
    const std::uint8_t code = payload.u8();
    require_record(code < kCodes.size(), "an error has an unknown code");
    // The text goes to a terminal at some time, and the file may have written it.
    throw Error(kCodes[code], printable(payload.text(payload.u32())));
  }

  RecordSource& source_;
  const TreeDecodeOptions& options_;
  std::uint64_t file_bytes_;
  std::uint64_t max_objects_;
  std::uint64_t room_for_elements_;
  std::uint64_t room_for_heads_;
  std::uint64_t missing_elements_ = 0;  // of the latest dataset
  Hdf5Tree tree_;
};

}  // namespace

// Small files may declare the amount that is always allowed; larger ones what compression could make of them.
std::uint64_t max_declared_bytes(std::uint64_t file_bytes, const TreeLimits& limits) {
  const std::uint64_t largest = std::numeric_limits<std::uint64_t>::max();
  const std::uint64_t compressed = file_bytes > largest / kMaxCompression ? largest : file_bytes * kMaxCompression;
  return std::min(limits.max_array_bytes, std::max(kAlwaysAllowedBytes, compressed));
}

std::uint64_t max_head_bytes(std::uint64_t file_bytes) {
  // Paths repeat the names of groups, so heads may be larger than the file. The division avoids an overflow.
  return 4 * std::min(file_bytes, std::numeric_limits<std::uint64_t>::max() / 8) + (std::uint64_t{1} << 20);
}

std::uint32_t record_count(std::size_t count) {
  constexpr std::size_t kMost = std::numeric_limits<std::uint32_t>::max();
  if (count <= kMost) return static_cast<std::uint32_t>(count);
  throw Error(ErrorCode::unsupported,
              fmt::format("it has a text or a list of {} bytes or entries, and at most {} are read", count, kMost));
}

Hdf5Tree decode_tree(RecordSource& source, std::uint64_t file_bytes, const TreeLimits& limits,
                     const TreeDecodeOptions& options) {
  return TreeDecoder(source, file_bytes, limits, options).decode();
}

void TreeEncoder::add_group(const Hdf5Group& group) {
  PayloadWriter payload;
  payload.write_text(group.path);
  payload.write_attributes(group.attributes);
  write_record(write_, Record::group, payload.bytes());
}

void TreeEncoder::add_dataset(const Hdf5Dataset& dataset) {
  PayloadWriter payload;
  payload.write_text(dataset.array.name);
  payload.write_numbers_head(dataset.array);
  payload.write_attributes(dataset.attributes);
  write_record(write_, Record::dataset, payload.bytes());
}

void TreeEncoder::add_elements(std::span<const std::byte> bytes) {
  write_record(write_, Record::elements, bytes);
}

void TreeEncoder::add_text(const Hdf5Text& text) {
  PayloadWriter payload;
  payload.write_text(text.path);
  payload.write_text(text.text);
  payload.write_attributes(text.attributes);
  write_record(write_, Record::text, payload.bytes());
}

void TreeEncoder::add_unreadable(const Hdf5Unreadable& object) {
  PayloadWriter payload;
  payload.write_text(printable(object.path));
  payload.write_text(printable(object.problem));
  write_record(write_, Record::unreadable, payload.bytes());
}

void TreeEncoder::finish() {
  write_record(write_, Record::finished, {});
}

void TreeEncoder::refuse(ErrorCode code, std::string_view problem) {
  // A code that the receiver does not take becomes the first of them, so that the sentence still arrives.
  const auto* known = std::find(kCodes.begin(), kCodes.end(), code);
  PayloadWriter payload;
  payload.write_u8(known == kCodes.end() ? std::uint8_t{0} : static_cast<std::uint8_t>(known - kCodes.begin()));
  // A longer text would only be cut by the receiver.
  payload.write_text(problem.substr(0, kMaxPrintableBytes));
  write_record(write_, Record::refused, payload.bytes());
}

}  // namespace holdfast::format
