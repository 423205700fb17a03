// Shows the header of a file: kind, size, metadata, a table of the model's layers and one of arrays. It reads no
// element, so it takes no longer for a large file. What cannot be read of an HDF5 file or an .npz is named. Values that
// a kind of file does not have, such as digests of foreign files, are left out. docs/decisions/exchange.md

#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>

#include "holdfast/format/exchange/any_file.h"
#include "metadata.h"
#include "option_checks.h"
#include "subcommands.h"
#include "table.h"
#include "text.h"

namespace holdfast::cli {
namespace {

using format::AnyFile;
using format::ArrayInfo;
using format::FileKind;

struct InspectOptions {
  std::string path;
  bool as_json = false;
  std::uint64_t max_memory_bytes = kMaxFileMemoryBytes;  // as of AnyFileOptions
};

std::uint64_t total_bytes(const AnyFile& file) {
  std::uint64_t total = 0;
  for (const ArrayInfo& array : file.arrays()) total += format::size_bytes(array);
  return total;
}

// Elements of different types are added up, which is what people count as the size of a model.
std::uint64_t total_elements(const AnyFile& file) {
  std::uint64_t total = 0;
  for (const ArrayInfo& array : file.arrays()) total += format::size_bytes(array) / size_bytes(array.dtype);
  return total;
}

// People read this. The JSON has name(kind), which programs read.
std::string describe_kind(FileKind kind) {
  static const std::map<FileKind, std::string> kNames = {
      {FileKind::holdfast, "Holdfast"}, {FileKind::safetensors, "safetensors"},
      {FileKind::npz, "NumPy .npz"},    {FileKind::keras, "Keras"},
      {FileKind::hdf5, "HDF5"},         {FileKind::npy, "NumPy .npy"}};
  return kNames.at(kind);
}

// Known for Holdfast's files only. The layouts of other kinds have more forms than two words could say.
std::string describe_storage(const AnyFile& file, const ArrayInfo& array) {
  if (file.array_file() == nullptr) return "-";
  return array.storage == format::Storage::zstd ? "zstd" : "contiguous";
}

Table make_table(const AnyFile& file) {
  Table table({"name", "type", "shape", ">bytes", ">stored", ">ratio", "storage"});
  for (const ArrayInfo& array : file.arrays()) {
    const std::uint64_t bytes = format::size_bytes(array);
    table.add({array.name, std::string(name(array.dtype)), describe_shape(array.shape), std::to_string(bytes),
               // A foreign file may not say it, and 0 would look like an array that takes no room.
               array.stored_bytes == 0 ? "-" : std::to_string(array.stored_bytes),
               describe_ratio(bytes, array.stored_bytes), describe_storage(file, array)});
  }
  return table;
}

void write_text(const AnyFile& file, const std::string& path, std::ostream& out) {
  const std::uint64_t bytes = total_bytes(file);
  std::vector<std::pair<std::string, std::string>> lines = {{"file", path}, {"format", describe_kind(file.kind())}};
  if (file.array_file() != nullptr) {
    // This program opens no other version.
    lines.back().second += fmt::format(", version {}", format::kFormatVersion);
    lines.emplace_back("digest", file.array_file()->file_digest().hex());
  }
  lines.emplace_back(
      "size",
      fmt::format("{} for {} with {} in {} (ratio {})", describe_count(file.file_bytes(), "byte"),
                  describe_count(file.arrays().size(), "array"), describe_count(total_elements(file), "element"),
                  describe_count(bytes, "byte"), describe_ratio(bytes, file.file_bytes())));
  for (auto& line : summarise_metadata(file)) lines.push_back(std::move(line));
  for (const auto& [name, text] : lines) {
    out << name << std::string(name.size() < 11 ? 11 - name.size() : 1, ' ') << printable(text) << "\n";
  }
  // Empty for a file without a model of layers.
  const std::vector<LayerRow> layers = model_layers(parse_metadata(file.metadata()));
  if (!layers.empty()) {
    Table table({"layer", "kind", "called on"});
    for (const LayerRow& layer : layers) table.add({layer.name, layer.kind, layer.inputs});
    out << "\n";
    table.write(out);
  }
  out << "\n";
  make_table(file).write(out);
  for (const std::string& problem : file.unreadable()) out << "not read: " << printable(problem) << "\n";
}

nlohmann::ordered_json describe(const AnyFile& file, const ArrayInfo& array) {
  nlohmann::ordered_json description = {
      {"name", array.name}, {"type", name(array.dtype)}, {"shape", array.shape}, {"bytes", format::size_bytes(array)}};
  // In a foreign file 0 means that the size is unknown; in a file of ours it is the size of an empty array.
  if (array.stored_bytes != 0 || file.array_file() != nullptr) description["stored_bytes"] = array.stored_bytes;
  if (file.array_file() == nullptr) return description;
  description["storage"] = describe_storage(file, array);
  description["digest"] = array.digest.hex();
  return description;
}

void write_json(const AnyFile& file, const std::string& path, std::ostream& out) {
  // ordered_json keeps the order of the fields, so the output is the same each time.
  nlohmann::ordered_json arrays = nlohmann::ordered_json::array();
  for (const ArrayInfo& array : file.arrays()) arrays.push_back(describe(file, array));
  nlohmann::ordered_json description = {{"file", path}, {"format", name(file.kind())}};
  if (file.array_file() != nullptr) {
    description["format_version"] = format::kFormatVersion;
    description["digest"] = file.array_file()->file_digest().hex();
  }
  description["file_bytes"] = file.file_bytes();
  description["array_bytes"] = total_bytes(file);
  description["metadata"] = parse_metadata(file.metadata());
  description["arrays"] = std::move(arrays);
  if (!file.unreadable().empty()) {
    nlohmann::ordered_json problems = nlohmann::ordered_json::array();
    for (const std::string& problem : file.unreadable()) problems.push_back(problem);
    description["not_read"] = std::move(problems);
  }
  // A path may contain bytes that are not UTF-8; they are replaced rather than refused.
  out << description.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << "\n";
}

// Reads no element of an array. Returns the exit code. Throws what opening the file throws.
int inspect(FileSystem& files, const InspectOptions& options, Console& console) {
  const AnyFile file =
      AnyFile::open(files, options.path, {.max_memory_bytes = options.max_memory_bytes, .allow_unreadable = true});
  if (options.as_json) {
    write_json(file, options.path, console.out);
  } else {
    write_text(file, options.path, console.out);
  }
  return kDone;
}

}  // namespace

void add_inspect(Subcommands& commands) {
  commands.add<InspectOptions>(
      "inspect", "Show the arrays and the metadata of a file",
      [](CLI::App& command, InspectOptions& options) {
        command.add_option("FILE", options.path, kAnyFile)->required();
        command.add_flag("--json", options.as_json, "Print JSON, with all metadata");
        add_max_memory(command, options.max_memory_bytes);
      },
      [&commands](const InspectOptions& options) { return inspect(commands.files, options, commands.console); });
}

}  // namespace holdfast::cli
