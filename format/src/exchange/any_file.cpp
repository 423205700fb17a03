#include "holdfast/format/exchange/any_file.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "exchange/byte_source.h"
#include "exchange/hdf5_arrays.h"
#include "exchange/keras_tree.h"
#include "exchange/safetensors_file.h"
#include "exchange/zip.h"
#include "holdfast/base/error.h"
#include "holdfast/format/exchange/keras.h"
#include "holdfast/format/exchange/npz.h"
#include "user_block.h"

namespace holdfast::format {

class AnyFile::Content {
 public:
  virtual ~Content() = default;
  virtual const std::string& metadata() const = 0;
  virtual std::span<const ArrayInfo> arrays() const = 0;
  virtual std::vector<std::byte> read(const ArrayInfo& array) const = 0;
  virtual const ArrayFile* array_file() const { return nullptr; }
};

namespace {

class HoldfastContent : public AnyFile::Content {
 public:
  HoldfastContent(FileSystem& files, const std::string& path) : file_(ArrayFile::open(files, path)) {}

  const std::string& metadata() const override { return file_.metadata(); }
  std::span<const ArrayInfo> arrays() const override { return file_.arrays(); }
  std::vector<std::byte> read(const ArrayInfo& array) const override { return file_.read(array.name); }
  const ArrayFile* array_file() const override { return &file_; }

 private:
  ArrayFile file_;
};

class SafetensorsContent : public AnyFile::Content {
 public:
  SafetensorsContent(FileSystem& files, const std::string& path)
      : source_(std::make_unique<FileSource>(files, path)), file_(*source_) {
    for (const SafetensorsEntry& entry : file_.entries()) {
      infos_.push_back({.name = entry.name,
                        .dtype = entry.dtype,
                        .shape = entry.shape,
                        .digest = {},
                        .stored_bytes = entry.end - entry.begin});
    }
  }

  const std::string& metadata() const override { return file_.metadata(); }
  std::span<const ArrayInfo> arrays() const override { return infos_; }
  std::vector<std::byte> read(const ArrayInfo& array) const override {
    const auto index = static_cast<std::size_t>(&array - infos_.data());
    return within_memory(source_->path(), [&] { return file_.read(file_.entries()[index]); });
  }

 private:
  std::unique_ptr<FileSource> source_;
  SafetensorsFile file_;
  std::vector<ArrayInfo> infos_;
};

class SetContent : public AnyFile::Content {
 public:
  explicit SetContent(ArraySet set) : set_(std::move(set)) {
    for (const NamedArray& array : set_.arrays) {
      infos_.push_back({.name = array.name, .dtype = array.dtype, .shape = array.shape, .digest = {}});
    }
  }

  const std::string& metadata() const override { return set_.metadata; }
  std::span<const ArrayInfo> arrays() const override { return infos_; }
  std::vector<std::byte> read(const ArrayInfo& array) const override {
    return set_.arrays[static_cast<std::size_t>(&array - infos_.data())].bytes;
  }

 private:
  ArraySet set_;
  std::vector<ArrayInfo> infos_;
};

// `kind` becomes keras for an HDF5 file that Keras wrote.
ArraySet read_hdf5_of_anybody(FileSystem& files, const std::string& path, FileKind& kind) {
  Hdf5Tree tree = read_hdf5_tree(files, path);
  if (!is_keras_tree(tree)) return hdf5_arrays(std::move(tree));
  kind = FileKind::keras;
  return read_keras_tree(std::move(tree), path);
}

std::unique_ptr<AnyFile::Content> open_content(FileSystem& files, const std::string& path, FileKind& kind) {
  switch (kind) {
    case FileKind::holdfast:
      return std::make_unique<HoldfastContent>(files, path);
    case FileKind::safetensors:
      return std::make_unique<SafetensorsContent>(files, path);
    case FileKind::npz:
      return std::make_unique<SetContent>(read_npz(files, path));
    case FileKind::keras:
      return std::make_unique<SetContent>(read_keras(files, path));
    case FileKind::hdf5:
      break;
  }
  return std::make_unique<SetContent>(read_hdf5_of_anybody(files, path, kind));
}

constexpr std::size_t kStartBytes = 16;

bool starts_with(std::span<const std::byte> bytes, std::string_view start) {
  return bytes.size() >= start.size() && std::memcmp(bytes.data(), start.data(), start.size()) == 0;
}

// HDF5's signature stands at 0, 512, 1024 and so on, each time twice as far. None when it stands nowhere.
std::optional<std::uint64_t> find_hdf5(FileSource& source) {
  constexpr std::string_view kSignature = "\x89HDF\r\n\x1a\n";
  std::array<std::byte, kSignature.size()> bytes{};
  for (std::uint64_t offset = 0; offset <= source.size_bytes() && source.size_bytes() - offset >= bytes.size();
       offset = offset == 0 ? 512 : 2 * offset) {
    source.read(offset, bytes);
    if (starts_with(bytes, kSignature)) return offset;
  }
  return {};
}

FileKind kind_of_hdf5(const std::string& path, std::uint64_t offset) {
  // As Holdfast's files have it: what its index says would be missed.
  if (offset == kUserBlockBytes) {
    refuse_file(path,
                "is HDF5 behind a header that is not Holdfast's: a Holdfast file whose first bytes are damaged, or "
                "another program's; use another copy of it");
  }
  return FileKind::hdf5;
}

bool is_safetensors(FileSource& source, std::span<const std::byte> start) {
  if (start.size() < 9 || start[8] != std::byte{'{'}) return false;
  const std::uint64_t length = ByteCursor(source.path(), "its header", start).u64();
  return length <= std::min(kMaxSafetensorsHeaderBytes, source.size_bytes() - 8);
}

[[noreturn]] void refuse_pickle(const std::string& path) {
  throw Error(ErrorCode::unsupported,
              path +
                  " holds pickled Python objects (as torch.save writes them), which are code and are never run; save "
                  "it with safetensors.torch.save_file(model.state_dict(), \"model.safetensors\")");
}

FileKind kind_of_archive(FileSource& source) {
  const ZipReader archive(source);
  const auto has_member = [&](std::string_view end) {
    return std::any_of(archive.entries().begin(), archive.entries().end(),
                       [&](const ZipEntry& entry) { return entry.name.ends_with(end); });
  };
  if (has_member("data.pkl")) refuse_pickle(source.path());
  return has_member("config.json") || has_member(".weights.h5") ? FileKind::keras : FileKind::npz;
}

}  // namespace

std::string_view name(FileKind kind) {
  constexpr std::array<std::string_view, 5> kNames = {"holdfast", "safetensors", "npz", "keras", "hdf5"};
  return kNames[static_cast<std::size_t>(kind)];
}

FileKind recognise(FileSystem& files, const std::string& path) {
  FileSource source(files, path);
  std::vector<std::byte> start(std::min<std::uint64_t>(kStartBytes, source.size_bytes()));
  source.read(0, start);
  if (has_array_file_magic(start)) return FileKind::holdfast;
  if (starts_with(start, "PK\x03\x04") || starts_with(start, "PK\x05\x06")) {
    return within_memory(path, [&] { return kind_of_archive(source); });
  }
  if (is_safetensors(source, start)) return FileKind::safetensors;
  if (const auto offset = find_hdf5(source)) return kind_of_hdf5(path, *offset);
  if (starts_with(start, "\x80")) refuse_pickle(path);
  refuse_file(path, "is no file that Holdfast reads (its own, safetensors, NumPy's .npz, Keras's .keras, HDF5): its " +
                        std::to_string(source.size_bytes()) +
                        " bytes begin like none of them; check the path, or use another copy of it");
}

AnyFile::AnyFile(std::string path, FileKind kind, std::uint64_t file_bytes, std::unique_ptr<Content> content)
    : path_(std::move(path)), kind_(kind), file_bytes_(file_bytes), content_(std::move(content)) {}
AnyFile::~AnyFile() = default;
AnyFile::AnyFile(AnyFile&&) noexcept = default;
AnyFile& AnyFile::operator=(AnyFile&&) noexcept = default;

AnyFile AnyFile::open(FileSystem& files, const std::string& path) {
  FileKind kind = recognise(files, path);
  std::unique_ptr<Content> content = within_memory(path, [&] { return open_content(files, path, kind); });
  return AnyFile(path, kind, files.open_for_reading(path)->size_bytes(), std::move(content));
}

const std::string& AnyFile::metadata() const {
  return content_->metadata();
}

std::span<const ArrayInfo> AnyFile::arrays() const {
  return content_->arrays();
}

const ArrayInfo* AnyFile::find(std::string_view name) const {
  const std::span<const ArrayInfo> all = arrays();
  const auto found =
      std::lower_bound(all.begin(), all.end(), name,
                       [](const ArrayInfo& array, std::string_view wanted) { return array.name < wanted; });
  return found != all.end() && found->name == name ? &*found : nullptr;
}

std::vector<std::byte> AnyFile::read(std::string_view name) const {
  const ArrayInfo* array = find(name);
  if (array == nullptr) {
    throw Error(ErrorCode::not_found, path_ + " has no array " + shown(name) + " among its " +
                                          std::to_string(arrays().size()) + "; \"holdfast inspect\" lists them");
  }
  return content_->read(*array);
}

const ArrayFile* AnyFile::array_file() const {
  return content_->array_file();
}

ArraySet AnyFile::read_all(const std::function<void(std::uint64_t done, std::uint64_t total)>& progress) const {
  return within_memory(path_, [&] {
    std::uint64_t total = 0;
    std::uint64_t done = 0;
    for (const ArrayInfo& array : arrays()) total += size_bytes(array);
    ArraySet set{.arrays = {}, .metadata = metadata()};
    for (const ArrayInfo& array : arrays()) {
      set.arrays.push_back({array.name, array.dtype, array.shape, content_->read(array)});
      if (progress) progress(done += size_bytes(array), total);
    }
    return set;
  });
}

ArraySet read_any(FileSystem& files, const std::string& path) {
  return AnyFile::open(files, path).read_all();
}

}  // namespace holdfast::format
