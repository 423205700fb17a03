// A .keras archive comes from anybody, and its HDF5 weights must be in memory to be parsed. Keras stores members
// uncompressed, so a member that expands a lot is refused before memory is allocated for it. The weights are parsed
// like every HDF5 file of another program (foreign_file.h). docs/decisions/exchange.md

#include "keras_files/keras_archive.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "holdfast/base/error.h"
#include "keras_files/keras_weights.h"
#include "zip/zip.h"

namespace holdfast::format {
namespace {

// The names are those of Keras 3's saving library. An archive has no other members than these and its assets.
constexpr const char* kConfigMember = "config.json";
constexpr const char* kMetadataMember = "metadata.json";
constexpr const char* kWeightsMember = "model.weights.h5";
constexpr const char* kAssetPrefix = "assets/";

// Keras stores its members uncompressed. A member that another program compressed beyond these ratios may have only
// so many bytes, because neither weights nor a configuration compress that well.
constexpr std::uint64_t kMaxFreeWeightsBytes = std::uint64_t{64} << 20;
constexpr std::uint64_t kMaxWeightsRatio = 100;
constexpr std::uint64_t kMaxFreeTextBytes = std::uint64_t{4} << 20;
constexpr std::uint64_t kMaxTextRatio = 10;

bool is_compressed_beyond(const ZipEntry& entry, std::uint64_t free_bytes, std::uint64_t ratio) {
  return entry.size_bytes > free_bytes && entry.size_bytes / ratio > entry.stored_bytes;
}

std::vector<std::byte> as_bytes(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

}  // namespace

bool is_keras_archive(FileSystem& files, const std::string& path) {
  std::array<std::byte, 4> start{};
  const std::size_t size = files.open_for_reading(path)->read_at(0, start);
  // The signature of the first member. An archive without members would not be a Keras file.
  constexpr std::array<std::byte, 4> kZip = {std::byte{'P'}, std::byte{'K'}, std::byte{3}, std::byte{4}};
  return size == start.size() && start == kZip;
}

KerasArchive::KerasArchive(FileSystem& files, const std::string& path, const TreeLimits& limits)
    : source_(files, path), reader_(source_) {
  const ZipEntry* weights = nullptr;
  for (const ZipEntry& entry : reader_.entries()) {
    if (entry.name == kConfigMember) {
      config_ = read_text(entry);
    } else if (entry.name == kMetadataMember) {
      metadata_ = read_text(entry);
    } else if (entry.name == kWeightsMember) {
      weights = &entry;
    } else if (entry.name.starts_with(kAssetPrefix)) {
      assets_.push_back(entry);
    } else {
      throw Error(ErrorCode::unsupported, fmt::format("{} has the member {}, which a .keras file with HDF5 weights "
                                                      "does not have; save the model with Keras's weights_format h5",
                                                      path, quoted_text(entry.name)));
    }
  }
  // An empty member of weights is not an HDF5 file either, and has no bytes to parse.
  if (config_.empty() || weights == nullptr || weights->size_bytes == 0) {
    throw Error(
        ErrorCode::invalid_file,
        fmt::format(
            "{} is not a .keras file: it lacks config.json or model.weights.h5; save the model again with Keras",
            path));
  }
  // Only now, when all members are known to be expected ones, is memory taken for the weights.
  weights_ = std::make_unique<const ForeignHdf5>(read_weights(*weights, limits));
}

// Sizes are those of the archive's directory, and are checked before memory is taken for them.
std::string KerasArchive::read_text(const ZipEntry& entry) const {
  if (entry.size_bytes > kMaxKerasJsonBytes) {
    refuse_keras_model(fmt::format("{} in {}", entry.name, source_.path()),
                       fmt::format("has {} bytes, and at most {} are read", entry.size_bytes, kMaxKerasJsonBytes));
  }
  if (is_compressed_beyond(entry, kMaxFreeTextBytes, kMaxTextRatio)) refuse_growth(entry);
  const std::vector<std::byte> bytes = reader_.read(entry);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void KerasArchive::refuse_growth(const ZipEntry& entry) const {
  refuse_file(
      source_.path(),
      fmt::format(
          "is refused: its member {} would grow from {} to {} bytes; if you trust it, save the model again with Keras",
          quoted_text(entry.name), entry.stored_bytes, entry.size_bytes));
}

// The member is unpacked into the memory that the helper process will parse, so there is no second copy of the weights.
ForeignHdf5 KerasArchive::read_weights(const ZipEntry& entry, const TreeLimits& limits) const {
  const std::string label = fmt::format("{} in {}", kWeightsMember, source_.path());
  if (is_compressed_beyond(entry, kMaxFreeWeightsBytes, kMaxWeightsRatio)) refuse_growth(entry);
  return {entry.size_bytes, label, limits, [&](std::span<std::byte> memory) { reader_.read_into(entry, memory); }};
}

KerasContent KerasArchive::content(Hdf5Tree tree,
                                   const std::function<std::vector<std::byte>(std::size_t asset)>& bytes_of) const {
  const std::string weights = fmt::format("{} in {}", kWeightsMember, source_.path());
  const std::string label = fmt::format("the model's configuration in {}", source_.path());
  KerasContent content;
  content.description.form = KerasForm::archive;
  content.description.config = config_;
  content.description.archive_metadata = metadata_;
  for (std::size_t i = 0; i < assets_.size(); ++i) {
    const ZipEntry& asset = assets_[i];
    // Assets are arrays of bytes, so that they survive a conversion to a Holdfast file.
    content.description.paths.emplace(asset.name, asset.name);
    content.arrays.push_back({asset.name, DType::u8, {asset.size_bytes}, bytes_of(i)});
  }
  const Json config = parse_keras_json(config_, label);
  const KerasModel model(config, label);
  // A text among the weights would get lost when the same file is written again.
  require_no_texts(tree, weights);
  read_keras_weights(tree, &model, {.config = member(member(config, "compile_config"), "optimizer")}, content);
  return content;
}

void write_keras_archive(FileSystem& files, const std::string& path, const KerasContent& content) {
  KerasContent hdf5;
  hdf5.description = content.description;
  std::vector<ZipMember> assets;
  for (const NamedArray& array : content.arrays) {
    if (array.name.starts_with(kAssetPrefix)) {
      assets.push_back({array.name, array.bytes});
      // Members of the archive are not datasets of its HDF5 file.
      hdf5.description.paths.erase(array.name);
    } else {
      hdf5.arrays.push_back(array);
    }
  }
  // In the order in which Keras writes them.
  std::vector<ZipMember> members = {
      {kMetadataMember, as_bytes(content.description.archive_metadata)},
      {kConfigMember, as_bytes(content.description.config)},
      {kWeightsMember, compose_hdf5_tree(path, keras_tree(hdf5.arrays, hdf5.description))}};
  members.insert(members.end(), assets.begin(), assets.end());
  write_zip(files, path, members);
}

}  // namespace holdfast::format
