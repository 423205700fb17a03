// Writes and reads the event files of TensorBoard. A few fields of its protobuf messages suffice, which
// is less code than a dependency that generates it. Tests compare the bytes
// with those of TensorBoard's own writer. Files that others wrote or that a kill cut off are read up to
// the first damaged record, as TensorBoard does. See docs/decisions/records.md.

#include "callbacks/event_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <boost/crc.hpp>
#include <charconv>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

#include "callbacks/protobuf_fields.h"

namespace holdfast {
namespace {

using protobuf::double_field;
using protobuf::little_endian;
using protobuf::number_field;
using protobuf::text_field;
using protobuf::Wire;

constexpr std::string_view kPrefix = "events.out.tfevents.";
constexpr std::int64_t kLastSecond = 9'999'999'999;  // the last one with ten digits
constexpr std::string_view kEventVersion = "brain.Event:2";
constexpr std::size_t kLengthBytes = 8;
constexpr std::size_t kChecksumBytes = 4;

std::uint64_t number_at(std::string_view bytes, std::size_t at, std::size_t size) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size; ++i) {
    value |= std::uint64_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
  }
  return value;
}

// A checksum over bytes that contain their own checksum would be weak, so the format rotates and shifts
// it.
std::string masked_checksum(std::string_view bytes) {
  boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true> castagnoli;
  castagnoli.process_bytes(bytes.data(), bytes.size());
  return little_endian(std::rotr(std::uint32_t{castagnoli.checksum()}, 15) + 0xA282EAD8U);
}

std::string framed(const std::string& message) {
  const std::string length = little_endian(std::uint64_t{message.size()});
  return length + masked_checksum(length) + message + masked_checksum(message);
}

// Fields of the message Event.
constexpr int kWallTime = 1;
constexpr int kStep = 2;
constexpr int kFileVersion = 3;
constexpr int kGraph = 4;
constexpr int kSummary = 5;
constexpr int kSessionLog = 7;

// TensorBoard takes this record as the order to drop later points.
const std::string kSessionStart = number_field(1, 1);  // as a message SessionLog

std::string event(double seconds, std::int64_t step, const std::string& what) {
  // Protobuf leaves out a 0.
  const std::string at = step == 0 ? "" : number_field(kStep, static_cast<std::uint64_t>(step));
  return framed(double_field(kWallTime, seconds) + at + what);
}

std::optional<std::uint64_t> take_varint(std::string_view& bytes) {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    value |= std::uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

std::optional<std::string_view> take(std::string_view& bytes, std::uint64_t count) {
  if (count > bytes.size()) return std::nullopt;
  const std::string_view taken = bytes.substr(0, count);
  bytes.remove_prefix(count);
  return taken;
}

struct ReadEvent {
  std::int64_t step = 0;
  std::string summary;
  bool is_start = false;
};

// Parses a message, including those of other writers, whose further fields are skipped. Empty if it is
// damaged.
std::optional<ReadEvent> read_event(std::string_view message) {
  ReadEvent event;
  while (!message.empty()) {
    const auto head = take_varint(message);
    if (!head) return std::nullopt;
    const std::uint64_t field = *head >> 3;
    const auto wire = static_cast<Wire>(*head & 7);
    if (wire == Wire::varint) {
      const auto value = take_varint(message);
      if (!value) return std::nullopt;
      if (field == kStep) event.step = static_cast<std::int64_t>(*value);
      continue;
    }
    std::optional<std::uint64_t> size;
    if (wire == Wire::eight_bytes) size = 8;
    if (wire == Wire::four_bytes) size = 4;
    if (wire == Wire::text) size = take_varint(message);
    const auto content = size ? take(message, *size) : std::nullopt;
    if (!content) return std::nullopt;
    if (field == kSummary) event.summary = *content;
    if (field == kSessionLog) event.is_start = *content == kSessionStart;
  }
  return event;
}

std::string read_at(File& file, std::uint64_t offset, std::uint64_t bytes) {
  std::string text(bytes, '\0');
  text.resize(file.read_at(offset, std::as_writable_bytes(std::span(text))));
  return text;
}

// Returns the message of the record at `offset` and advances `offset` past the record. Empty if there
// is not a whole one.
std::optional<std::string> take_record(File& file, std::uint64_t file_bytes, std::uint64_t& offset) {
  const std::string head = read_at(file, offset, kLengthBytes + kChecksumBytes);
  if (head.size() < kLengthBytes + kChecksumBytes) return std::nullopt;
  // Checked before the length is used: a torn record may claim any length.
  if (head.substr(kLengthBytes) != masked_checksum(head.substr(0, kLengthBytes))) return std::nullopt;
  const std::uint64_t length = number_at(head, 0, kLengthBytes);
  const std::uint64_t left = file_bytes - offset - head.size();
  if (left < kChecksumBytes || length > left - kChecksumBytes) return std::nullopt;
  std::string message = read_at(file, offset + head.size(), length + kChecksumBytes);
  if (message.size() < length + kChecksumBytes) return std::nullopt;
  const std::string checksum = message.substr(length);
  message.resize(length);
  if (checksum != masked_checksum(message)) return std::nullopt;
  offset += head.size() + length + kChecksumBytes;
  return message;
}

// A damaged record ends the file: where the next one begins is known from its length alone.
void show(File& file, EventPoints& shown) {
  const std::uint64_t file_bytes = file.size_bytes();
  std::uint64_t offset = 0;
  while (offset < file_bytes) {
    const auto message = take_record(file, file_bytes, offset);
    const auto event = message ? read_event(*message) : std::nullopt;
    if (!event) return;
    if (event->is_start) shown.erase(shown.lower_bound(event->step), shown.end());
    if (!event->summary.empty()) shown[event->step] = event->summary;
  }
}

std::vector<std::string> event_files(FileSystem& files, const std::string& folder) {
  std::vector<std::string> names;
  if (!files.exists(folder)) return names;
  // The list is sorted, which is the order that TensorBoard reads in.
  for (const std::string& name : files.list(folder)) {
    if (name.find("tfevents") != std::string::npos) names.push_back(name);
  }
  return names;
}

}  // namespace

std::string summary_value(const std::string& tag, const std::string& value) {
  return text_field(1, text_field(1, tag) + value);
}

std::string scalar_summary(const std::vector<std::pair<std::string, float>>& scalars) {
  std::string summary;
  for (const auto& [tag, value] : scalars) {
    summary += summary_value(tag, protobuf::float_field(2, value));
  }
  return summary;
}

std::string version_record(double seconds) {
  return event(seconds, 0, text_field(kFileVersion, kEventVersion));
}

std::string start_record(double seconds, std::int64_t step) {
  return event(seconds, step, text_field(kSessionLog, kSessionStart));
}

std::string summary_record(double seconds, std::int64_t step, const std::string& summary) {
  return event(seconds, step, text_field(kSummary, summary));
}

std::string graph_record(double seconds, const std::string& graph) {
  return event(seconds, 0, text_field(kGraph, graph));
}

EventPoints shown_points(FileSystem& files, const std::string& folder) {
  EventPoints shown;
  for (const std::string& name : event_files(files, folder)) show(*files.open_for_reading(folder + "/" + name), shown);
  return shown;
}

std::string last_event_file(FileSystem& files, const std::string& folder) {
  const std::vector<std::string> names = event_files(files, folder);
  return names.empty() ? "" : names.back();
}

std::string next_event_file(FileSystem& files, const std::string& folder, std::int64_t seconds) {
  for (const std::string& name : event_files(files, folder)) {
    if (!name.starts_with(kPrefix)) continue;
    std::int64_t last = 0;
    std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), last);
    // TensorBoard reads a folder's files in the order of their names, so the number must be the
    // largest, and keep ten digits.
    if (last < kLastSecond) seconds = std::max(seconds, last + 1);
  }
  return fmt::format("{}{:010}.holdfast", kPrefix, seconds);
}

}  // namespace holdfast
