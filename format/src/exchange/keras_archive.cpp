#include "exchange/keras_archive.h"

#include <algorithm>
#include <array>

#include "exchange/keras_weights.h"
#include "exchange/zip.h"
#include "holdfast/base/error.h"

namespace holdfast::format {
namespace {

constexpr const char* kConfigMember = "config.json";
constexpr const char* kMetadataMember = "metadata.json";
constexpr const char* kWeightsMember = "model.weights.h5";
constexpr const char* kAssetPrefix = "assets/";

std::string as_text(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::vector<std::byte> as_bytes(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

void read_weights(const std::vector<std::byte>& file, const std::string& path, KerasContent& content) {
  const std::string label = "the model's configuration in " + path;
  const Json config = parse_keras_json(content.description.config, label);
  const KerasModel model(config, label);
  const std::string weights = std::string(kWeightsMember) + " in " + path;
  Hdf5Tree tree = read_hdf5_tree(file, weights);
  require_no_texts(tree, weights);
  read_keras_weights(tree, &model, {.config = member(member(config, "compile_config"), "optimizer")}, content);
}

void add_asset(ZipMember member, const std::string& path, KerasContent& content) {
  if (!member.name.starts_with(kAssetPrefix)) {
    throw Error(ErrorCode::unsupported, path + " has the member \"" + member.name +
                                            "\", which no .keras file of weights in HDF5 has; save the model with "
                                            "Keras's own weights_format, h5");
  }
  content.description.paths.emplace(member.name, member.name);
  const std::uint64_t size = member.bytes.size();
  content.arrays.push_back(
      {.name = member.name, .dtype = DType::u8, .shape = {size}, .bytes = std::move(member.bytes)});
}

}  // namespace

bool is_keras_archive(FileSystem& files, const std::string& path) {
  std::array<std::byte, 4> start{};
  const std::size_t size = files.open_for_reading(path)->read_at(0, start);
  constexpr std::array<std::byte, 4> kZip = {std::byte{'P'}, std::byte{'K'}, std::byte{3}, std::byte{4}};
  return size == start.size() && start == kZip;
}

KerasContent read_keras_archive(FileSystem& files, const std::string& path) {
  KerasContent content;
  content.description.form = KerasForm::archive;
  std::vector<std::byte> weights;
  for (ZipMember& member : read_zip(files, path)) {
    if (member.name == kConfigMember) {
      content.description.config = as_text(member.bytes);
    } else if (member.name == kMetadataMember) {
      content.description.archive_metadata = as_text(member.bytes);
    } else if (member.name == kWeightsMember) {
      weights = std::move(member.bytes);
    } else {
      add_asset(std::move(member), path, content);
    }
  }
  if (content.description.config.empty() || weights.empty()) {
    throw Error(ErrorCode::invalid_file, path +
                                             " is no .keras file: it lacks config.json or model.weights.h5; save "
                                             "the model again with Keras");
  }
  read_weights(weights, path, content);
  return content;
}

void write_keras_archive(FileSystem& files, const std::string& path, const KerasContent& content) {
  KerasContent hdf5;
  hdf5.description = content.description;
  std::vector<ZipMember> assets;
  for (const NamedArray& array : content.arrays) {
    if (array.name.starts_with(kAssetPrefix)) {
      assets.push_back({array.name, array.bytes});
      hdf5.description.paths.erase(array.name);
    } else {
      hdf5.arrays.push_back(array);
    }
  }
  std::vector<ZipMember> members = {
      {kMetadataMember, as_bytes(content.description.archive_metadata)},
      {kConfigMember, as_bytes(content.description.config)},
      {kWeightsMember, compose_hdf5_tree(path, keras_tree(hdf5.arrays, hdf5.description))}};
  members.insert(members.end(), assets.begin(), assets.end());
  write_zip(files, path, members);
}

}  // namespace holdfast::format
