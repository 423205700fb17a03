#pragma once

// Keras 3's archives: a ZIP file with the model's configuration, its weights as an HDF5 file, and files that layers
// add under assets/.

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bytes/byte_source.h"
#include "foreign_hdf5/foreign_file.h"
#include "holdfast/base/file_system.h"
#include "keras_files/keras_content.h"
#include "zip/zip.h"

namespace holdfast::format {

// Looks at the first bytes only.
bool is_keras_archive(FileSystem& files, const std::string& path);

// An archive whose weights are in memory as stored. They are parsed when they are needed.
class KerasArchive {
 public:
  // Throws as read_keras does.
  KerasArchive(FileSystem& files, const std::string& path, const TreeLimits& limits = {});

  const ForeignHdf5& weights() const { return *weights_; }
  const std::vector<ZipEntry>& assets() const { return assets_; }
  std::vector<std::byte> read(const ZipEntry& asset) const { return reader_.read(asset); }
  void read_pieces(const ZipEntry& asset, const std::function<void(std::span<const std::byte>)>& take) const {
    reader_.read_pieces(asset, take);
  }

  // Returns the archive's content with the arrays of `tree`, which must be the tree of weights(). `bytes_of` returns
  // the bytes of asset number `asset`.
  KerasContent content(Hdf5Tree tree, const std::function<std::vector<std::byte>(std::size_t asset)>& bytes_of) const;

 private:
  std::string read_text(const ZipEntry& entry) const;
  [[noreturn]] void refuse_growth(const ZipEntry& entry) const;
  ForeignHdf5 read_weights(const ZipEntry& entry, const TreeLimits& limits) const;

  FileSource source_;
  ZipReader reader_;
  std::string config_;
  std::string metadata_;
  std::vector<ZipEntry> assets_;
  std::unique_ptr<const ForeignHdf5> weights_;
};

// `content` must have a configuration and the paths of a weights file.
void write_keras_archive(FileSystem& files, const std::string& path, const KerasContent& content);

}  // namespace holdfast::format
