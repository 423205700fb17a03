#include "inspect.h"

#include <algorithm>
#include <array>
#include <iomanip>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>
#include <vector>

#include "exit_code.h"
#include "holdfast/format/array_file.h"

namespace holdfast::cli {
namespace {

using format::ArrayFile;
using format::ArrayInfo;

std::string describe_shape(const std::vector<std::uint64_t>& shape) {
  std::string text = "[";
  for (const std::uint64_t extent : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(extent);
  return text + "]";
}

// How many times smaller the bytes lie in the file than in memory.
std::string describe_ratio(std::uint64_t bytes, std::uint64_t stored_bytes) {
  if (stored_bytes == 0) return "-";
  std::ostringstream text;
  text << std::fixed << std::setprecision(2) << static_cast<double>(bytes) / static_cast<double>(stored_bytes);
  return text.str();
}

std::uint64_t total_bytes(const ArrayFile& file) {
  std::uint64_t total = 0;
  for (const ArrayInfo& array : file.arrays()) total += format::size_bytes(array);
  return total;
}

std::string describe_metadata(const ArrayFile& file) {
  std::string text = std::to_string(file.metadata().size()) + " bytes";
  const auto metadata = nlohmann::ordered_json::parse(file.metadata(), nullptr, false);
  if (!metadata.is_object() || metadata.empty()) return text;
  for (const char* key : {"step", "epoch"}) {
    if (metadata.contains(key)) text += std::string(", ") + key + " " + metadata[key].dump();
  }
  const char* separator = "; keys: ";
  for (const auto& item : metadata.items()) text += std::exchange(separator, ", ") + item.key();
  return text;
}

using Row = std::array<std::string, 6>;

std::vector<Row> make_table(const ArrayFile& file) {
  std::vector<Row> rows{{"name", "type", "shape", "stored bytes", "ratio", "digest"}};
  for (const ArrayInfo& array : file.arrays()) {
    rows.push_back({array.name, std::string(name(array.dtype)), describe_shape(array.shape),
                    std::to_string(array.stored_bytes), describe_ratio(format::size_bytes(array), array.stored_bytes),
                    array.digest.hex()});
  }
  return rows;
}

void write_table(const std::vector<Row>& rows, std::ostream& out) {
  std::array<std::size_t, std::tuple_size_v<Row>> widths{};
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const Row& row : rows) {
    for (std::size_t i = 0; i + 1 < row.size(); ++i) {
      out << std::left << std::setw(static_cast<int>(widths[i]) + 2) << row[i];
    }
    out << row.back() << "\n";
  }
}

void write_text(const ArrayFile& file, const std::string& path, std::ostream& out) {
  const std::uint64_t bytes = total_bytes(file);
  out << "file            " << path << "\n"
      << "format version  " << format::kFormatVersion << "\n"
      << "digest          " << file.file_digest().hex() << "\n"
      << "size            " << file.file_bytes() << " bytes for " << file.arrays().size() << " arrays of " << bytes
      << " bytes (ratio " << describe_ratio(bytes, file.file_bytes()) << ")\n"
      << "metadata        " << describe_metadata(file) << "\n\n";
  write_table(make_table(file), out);
}

void write_json(const ArrayFile& file, const std::string& path, std::ostream& out) {
  nlohmann::ordered_json arrays = nlohmann::ordered_json::array();
  for (const ArrayInfo& array : file.arrays()) {
    arrays.push_back({{"name", array.name},
                      {"type", name(array.dtype)},
                      {"shape", array.shape},
                      {"bytes", format::size_bytes(array)},
                      {"stored_bytes", array.stored_bytes},
                      {"digest", array.digest.hex()}});
  }
  const nlohmann::ordered_json description = {
      {"file", path},
      {"format_version", format::kFormatVersion},
      {"digest", file.file_digest().hex()},
      {"file_bytes", file.file_bytes()},
      {"metadata", nlohmann::ordered_json::parse(file.metadata(), nullptr, false)},
      {"arrays", arrays}};
  // A path is whatever bytes the system allows: those that are not UTF-8 are replaced rather than refused.
  out << description.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << "\n";
}

}  // namespace

int inspect(FileSystem& files, const std::string& path, const InspectOptions& options, std::ostream& out) {
  const ArrayFile file = ArrayFile::open(files, path);
  if (options.as_json) {
    write_json(file, path, out);
  } else {
    write_text(file, path, out);
  }
  return kWhole;
}

}  // namespace holdfast::cli
