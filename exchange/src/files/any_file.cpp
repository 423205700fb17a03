// One class for each kind of file, with one interface. HDF5 files and Keras archives share TreeContent. Their
// elements arrive in the order of the file's datasets, while names depend on the whole file. So naming runs once with
// a number in place of each array's elements, and the elements are matched by these numbers later.

#include "holdfast/format/exchange/any_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <optional>
#include <utility>

#include "bytes/byte_source.h"
#include "foreign_hdf5/hdf5_arrays.h"
#include "holdfast/base/error.h"
#include "keras_files/keras_archive.h"
#include "keras_files/keras_tree.h"
#include "numpy/npy_file.h"
#include "numpy/npz_file.h"
#include "safetensors/safetensors_file.h"
#include "zip/zip.h"

namespace holdfast::format {

namespace {

using Take = std::function<void(const ArrayInfo&, std::span<const std::byte>)>;
using Wants = std::function<bool(const ArrayInfo&)>;

// The array of a .npy file has no name. numpy.savez() would give it this one.
constexpr const char* kNameInNpy = "arr_0";

}  // namespace

// What each kind of file must provide.
class AnyFile::Content {
 public:
  virtual ~Content() = default;
  virtual const std::string& metadata() const = 0;
  virtual std::span<const ArrayInfo> arrays() const = 0;
  virtual std::vector<std::byte> read(const ArrayInfo& array) const = 0;
  virtual void read_pieces(const Wants& wants, const Take& take) const = 0;
  virtual const ArrayFile* array_file() const { return nullptr; }
  virtual std::span<const std::string> unreadable() const { return {}; }
};

namespace {

// Digests are checked by the file itself, so this class only passes on.
class HoldfastContent : public AnyFile::Content {
 public:
  HoldfastContent(FileSystem& files, const std::string& path) : file_(ArrayFile::open(files, path)) {}

  const std::string& metadata() const override { return file_.metadata(); }
  std::span<const ArrayInfo> arrays() const override { return file_.arrays(); }
  std::vector<std::byte> read(const ArrayInfo& array) const override { return file_.read(array.name); }
  void read_pieces(const Wants& wants, const Take& take) const override {
    for (const ArrayInfo& array : file_.arrays()) {
      if (!wants(array)) continue;
      file_.read_parts(array.name, [&](std::span<const std::byte> part) { take(array, part); });
    }
  }
  const ArrayFile* array_file() const override { return &file_; }

 private:
  ArrayFile file_;
};

ArrayInfo info_of(const SafetensorsEntry& entry) {
  return {.name = entry.name,
          .dtype = entry.dtype,
          .shape = entry.shape,
          .digest = {},
          .stored_bytes = entry.end - entry.begin};
}
ArrayInfo info_of(const NpzFile::Entry& entry) {
  return {.name = entry.name, .dtype = entry.header.dtype, .shape = entry.header.shape, .digest = {}};
}
ArrayInfo info_of(const NpyFile::Entry& entry) {
  ArrayInfo info{
      .name = kNameInNpy, .dtype = entry.header.dtype, .shape = entry.header.shape, .digest = {}, .stored_bytes = 0};
  info.stored_bytes = size_bytes(info);
  return info;
}

// The files differ in what their read() returns.
std::vector<std::byte> elements_of(const SafetensorsFile& file, const SafetensorsEntry& entry) {
  return file.read(entry);
}
template <typename NumpyFile>
std::vector<std::byte> elements_of(const NumpyFile& file, const typename NumpyFile::Entry& entry) {
  return file.read(entry).bytes;
}

// Files that are read entry by entry. Each entry is an array, at the same index.
template <typename EntriesFile>
class EntriesContent : public AnyFile::Content {
 public:
  template <typename... Options>
  EntriesContent(FileSystem& files, const std::string& path, Options... options)
      : source_(std::make_unique<FileSource>(files, path)), file_(*source_, options...) {
    for (const auto& entry : file_.entries()) infos_.push_back(info_of(entry));
  }

  const std::string& metadata() const override { return file_.metadata(); }
  std::span<const ArrayInfo> arrays() const override { return infos_; }
  std::vector<std::byte> read(const ArrayInfo& array) const override {
    return within_memory(source_->path(), [&] { return elements_of(file_, entry_of(array)); });
  }
  void read_pieces(const Wants& wants, const Take& take) const override {
    for (const ArrayInfo& array : infos_) {
      if (wants(array)) give(array, take);
    }
  }
  std::span<const std::string> unreadable() const override {
    if constexpr (requires { file_.unreadable(); }) return file_.unreadable();
    return {};
  }

 protected:
  virtual void give(const ArrayInfo& array, const Take& take) const {
    file_.read_pieces(entry_of(array), [&](std::span<const std::byte> piece) { take(array, piece); });
  }

 private:
  // The caller got the array from infos_, so its place there is that of its entry.
  const auto& entry_of(const ArrayInfo& array) const {
    return file_.entries()[static_cast<std::size_t>(&array - infos_.data())];
  }

  std::unique_ptr<FileSource> source_;
  EntriesFile file_;
  std::vector<ArrayInfo> infos_;
};

// Small arrays are read whole, since read() also reorders column-major ones. Larger ones stay in pieces.
template <typename NumpyFile>
class NumpyContent : public EntriesContent<NumpyFile> {
 public:
  using EntriesContent<NumpyFile>::EntriesContent;

 protected:
  void give(const ArrayInfo& array, const Take& take) const override {
    constexpr std::uint64_t kWholeBytes = std::uint64_t{64} << 20;
    if (size_bytes(array) > kWholeBytes) return EntriesContent<NumpyFile>::give(array, take);
    if (size_bytes(array) > 0) take(array, this->read(array));
  }
};

// The source of the arrays of an HDF5 file or a Keras archive: the datasets of a tree in their order, then the
// members of the archive.
class TreeSource {
 public:
  virtual ~TreeSource() = default;
  virtual const ForeignHdf5& file() const = 0;
  virtual FileKind kind(const Hdf5Tree& tree) const = 0;
  // Names the arrays of the tree. `asset` returns the bytes of a member.
  virtual ArraySet name_arrays(Hdf5Tree tree,
                               const std::function<std::vector<std::byte>(std::size_t)>& asset) const = 0;
  virtual std::size_t assets() const { return 0; }
  virtual std::vector<std::byte> read_asset(std::size_t /*asset*/) const { return {}; }
  virtual void read_asset(std::size_t /*asset*/,
                          const std::function<void(std::span<const std::byte>)>& /*take*/) const {}
};

class Hdf5Source : public TreeSource {
 public:
  Hdf5Source(FileSystem& files, const std::string& path, const TreeLimits& limits, TreeDemand demand)
      : path_(path), file_(files, path, limits, demand) {}

  const ForeignHdf5& file() const override { return file_; }
  FileKind kind(const Hdf5Tree& tree) const override { return is_keras_tree(tree) ? FileKind::keras : FileKind::hdf5; }
  ArraySet name_arrays(Hdf5Tree tree, const std::function<std::vector<std::byte>(std::size_t)>&) const override {
    return is_keras_tree(tree) ? read_keras_tree(std::move(tree), path_) : hdf5_arrays(std::move(tree));
  }

 private:
  std::string path_;
  ForeignHdf5 file_;
};

// The weights of an archive are an HDF5 member; assets are members of their own.
class KerasArchiveSource : public TreeSource {
 public:
  KerasArchiveSource(FileSystem& files, const std::string& path, const TreeLimits& limits)
      : archive_(files, path, limits) {}

  const ForeignHdf5& file() const override { return archive_.weights(); }
  FileKind kind(const Hdf5Tree&) const override { return FileKind::keras; }
  ArraySet name_arrays(Hdf5Tree tree, const std::function<std::vector<std::byte>(std::size_t)>& asset) const override {
    return finish_keras(archive_.content(std::move(tree), asset));
  }
  std::size_t assets() const override { return archive_.assets().size(); }
  std::vector<std::byte> read_asset(std::size_t asset) const override {
    return archive_.read(archive_.assets()[asset]);
  }
  void read_asset(std::size_t asset, const std::function<void(std::span<const std::byte>)>& take) const override {
    archive_.read_pieces(archive_.assets()[asset], take);
  }

 private:
  KerasArchive archive_;
};

class TreeContent : public AnyFile::Content {
 public:
  TreeContent(std::string path, std::unique_ptr<TreeSource> source, FileKind& kind)
      : path_(std::move(path)), source_(std::move(source)) {
    // Names, types and shapes alone: elements are not parsed before somebody asks for them.
    Hdf5Tree tree = source_->file().read_heads();
    kind = source_->kind(tree);
    // Naming may reorder or drop arrays, but does not look at elements. So each array holds a number instead, by
    // which it is found again.
    const std::size_t datasets = tree.datasets.size();
    for (Hdf5Unreadable& each : tree.unreadable) unreadable_.push_back(std::move(each.problem));
    for (std::size_t i = 0; i < datasets; ++i) tree.datasets[i].array.bytes = number_as_bytes(i);
    const ArraySet set =
        source_->name_arrays(std::move(tree), [&](std::size_t asset) { return number_as_bytes(datasets + asset); });
    metadata_ = set.metadata;
    arrays_of_.assign(datasets + source_->assets(), kNone);
    for (const NamedArray& array : set.arrays) {
      arrays_of_[number_of(array.bytes)] = infos_.size();
      // Arrays without a place in the set keep kNone: naming dropped them, so their elements are passed over.
      infos_.push_back({.name = array.name, .dtype = array.dtype, .shape = array.shape, .digest = {}});
    }
  }

  const std::string& metadata() const override { return metadata_; }
  std::span<const ArrayInfo> arrays() const override { return infos_; }
  std::span<const std::string> unreadable() const override { return unreadable_; }
  std::vector<std::byte> read(const ArrayInfo& array) const override {
    // A name may depend on the whole file, and one array cannot be parsed without those before it. So the first call
    // reads everything, and later calls look it up.
    if (!whole_) {
      ArraySet whole = within_memory(path_, [&] {
        return source_->name_arrays(source_->file().read(),
                                    [&](std::size_t asset) { return source_->read_asset(asset); });
      });
      // Attributes decide on names, and a crafted file can make the helper send others than with the heads.
      if (!std::ranges::equal(whole.arrays, infos_, have_one_head)) {
        refuse_file(path_,
                    "is refused: when it was read a second time, its arrays had other names or shapes; use another "
                    "copy of it");
      }
      whole_ = std::move(whole);
    }
    return whole_->arrays[static_cast<std::size_t>(&array - infos_.data())].bytes;
  }
  void read_pieces(const Wants& wants, const Take& take) const override {
    // Datasets and assets share one row of numbers: the datasets come first.
    const auto give = [&](std::size_t number, std::span<const std::byte> piece) {
      const std::size_t array = arrays_of_[number];
      if (array != kNone && wants(infos_[array])) take(infos_[array], piece);
    };
    // The helper sends all elements, wanted or not: it parses the file once from start to end.
    source_->file().read_elements(give);
    const std::size_t datasets = arrays_of_.size() - source_->assets();
    for (std::size_t i = datasets; i < arrays_of_.size(); ++i) {
      if (arrays_of_[i] == kNone || !wants(infos_[arrays_of_[i]])) continue;
      source_->read_asset(i - datasets, [&](std::span<const std::byte> piece) { give(i, piece); });
    }
  }

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};

  static bool have_one_head(const NamedArray& array, const ArrayInfo& info) {
    return array.name == info.name && array.dtype == info.dtype && array.shape == info.shape;
  }

  static std::vector<std::byte> number_as_bytes(std::size_t number) {
    const auto bytes = std::as_bytes(std::span(&number, 1));
    return {bytes.begin(), bytes.end()};
  }
  static std::size_t number_of(const std::vector<std::byte>& bytes) {
    std::size_t number = 0;
    HOLDFAST_ASSERT(bytes.size() == sizeof number);
    std::memcpy(&number, bytes.data(), sizeof number);
    return number;
  }

  std::string path_;
  std::unique_ptr<TreeSource> source_;
  std::string metadata_;
  std::vector<ArrayInfo> infos_;
  std::vector<std::string> unreadable_;
  std::vector<std::size_t> arrays_of_;     // number of a dataset or asset -> index of its array
  mutable std::optional<ArraySet> whole_;  // since the first read()
};

std::unique_ptr<AnyFile::Content> open_hdf5(FileSystem& files, const std::string& path, const TreeLimits& limits,
                                            FileKind& kind, bool allow_unreadable) {
  const auto open = [&](TreeDemand demand) {
    return std::make_unique<TreeContent>(path, std::make_unique<Hdf5Source>(files, path, limits, demand), kind);
  };
  if (!allow_unreadable) return open(TreeDemand::whole);
  try {
    return open(TreeDemand::whole);
  } catch (const Error& error) {
    // Other errors say nothing of an object in the file: a second try would end in them again.
    if (error.code() != ErrorCode::invalid_file) throw;
    // A file of Keras without some of its attributes is not one any more; then it is shown as plain HDF5.
    return open(TreeDemand::readable);
  }
}

std::unique_ptr<AnyFile::Content> open_content(FileSystem& files, const std::string& path, const TreeLimits& limits,
                                               FileKind& kind, bool allow_unreadable) {
  switch (kind) {
    case FileKind::holdfast:
      return std::make_unique<HoldfastContent>(files, path);
    case FileKind::safetensors:
      return std::make_unique<EntriesContent<SafetensorsFile>>(files, path);
    case FileKind::npy:
      return std::make_unique<NumpyContent<NpyFile>>(files, path);
    case FileKind::npz:
      return std::make_unique<NumpyContent<NpzFile>>(files, path,
                                                     allow_unreadable ? NpzDemand::readable : NpzDemand::whole);
    case FileKind::keras:
      return std::make_unique<TreeContent>(path, std::make_unique<KerasArchiveSource>(files, path, limits), kind);
    case FileKind::hdf5:
      break;
  }
  // Whether it is Keras's legacy format shows only in its attributes, so TreeContent may change `kind`.
  return open_hdf5(files, path, limits, kind, allow_unreadable);
}

// Enough for every signature, and for the length and the brace of safetensors.
constexpr std::size_t kStartBytes = 16;

// Compared as bytes: signatures have values that are not text.
bool starts_with(std::span<const std::byte> bytes, std::string_view start) {
  return bytes.size() >= start.size() && std::memcmp(bytes.data(), start.data(), start.size()) == 0;
}

// HDF5's signature is at offset 0, 512, 1024 or a further power of two. Empty if it is at none of them.
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

FileKind kind_of_hdf5(const std::string& path, std::uint64_t offset, std::span<const std::byte> start) {
  // MATLAB writes a text of 512 bytes first, "MATLAB 7.3 MAT-file, ...", and 7.0 before there was a 7.3. Holdfast's
  // header never begins like it, whatever is damaged in it.
  const bool is_of_matlab =
      starts_with(start, "MATLAB 7.") && start.size() > 11 && starts_with(start.subspan(10), " MAT-");
  if (offset == kUserBlockBytes && is_of_matlab) return FileKind::hdf5;
  // Holdfast's files have HDF5 at this offset. Reading one as plain HDF5 would skip the checks of its index.
  if (offset == kUserBlockBytes) {
    refuse_file(path,
                "is HDF5 after 512 bytes that are not Holdfast's header: a Holdfast file whose first bytes are "
                "damaged, or a file of another program; use another copy of it");
  }
  return FileKind::hdf5;
}

bool is_safetensors(FileSource& source, std::span<const std::byte> start) {
  // A safetensors file has no signature: a plausible length, then the brace of its JSON.
  if (start.size() < 9 || start[8] != std::byte{'{'}) return false;
  const std::uint64_t length = ByteCursor(source.path(), "its header", start).u64();
  return length <= std::min(kMaxSafetensorsHeaderBytes, source.size_bytes() - 8);
}

[[noreturn]] void refuse_pickle(const std::string& path) {
  throw Error(
      ErrorCode::unsupported,
      fmt::format(
          "{} holds pickled Python objects (as torch.save writes them), which can run code and are never loaded; save "
          "the weights with safetensors.torch.save_file(model.state_dict(), \"model.safetensors\")",
          path));
}

FileKind kind_of_archive(FileSource& source) {
  const ZipReader archive(source);
  const auto has_member = [&](std::string_view end) {
    return std::any_of(archive.entries().begin(), archive.entries().end(),
                       [&](const ZipEntry& entry) { return entry.name.ends_with(end); });
  };
  // Refused before anything else is looked at, so that no reader of another kind takes such an archive.
  if (has_member("data.pkl")) refuse_pickle(source.path());
  // Keras's archives have a configuration; archives of weights alone have an HDF5 member.
  return has_member("config.json") || has_member(".weights.h5") ? FileKind::keras : FileKind::npz;
}

}  // namespace

std::string_view name(FileKind kind) {
  constexpr std::array<std::string_view, 6> kNames = {"holdfast", "safetensors", "npz", "keras", "hdf5", "npy"};
  return kNames[static_cast<std::size_t>(kind)];
}

// By content, never by name: users rename files. The order matters, because safetensors has no signature and any
// bytes may look like one.
FileKind recognise(FileSystem& files, const std::string& path) {
  FileSource source(files, path);
  std::vector<std::byte> start(std::min<std::uint64_t>(kStartBytes, source.size_bytes()));
  source.read(0, start);
  if (begins_as_array_file(start)) return FileKind::holdfast;
  if (starts_with(start, "PK\x03\x04") || starts_with(start, "PK\x05\x06")) {
    return within_memory(path, [&] { return kind_of_archive(source); });
  }
  if (starts_with(start, kNpyMagic)) return FileKind::npy;
  if (is_safetensors(source, start)) return FileKind::safetensors;
  if (const auto offset = find_hdf5(source)) return kind_of_hdf5(path, *offset, start);
  // The opcode that begins a pickle of protocol 2 or later. Last, since it is a single byte.
  if (starts_with(start, "\x80")) refuse_pickle(path);
  refuse_file(
      path,
      fmt::format("is not a file that Holdfast reads (its own, safetensors, NumPy's .npy and .npz, Keras's "
                  ".keras, HDF5): its {} bytes begin like none of these; check the path, or use another copy of it",
                  source.size_bytes()));
}

AnyFile::AnyFile(std::string path, FileKind kind, std::uint64_t file_bytes, std::unique_ptr<Content> content)
    : path_(std::move(path)), kind_(kind), file_bytes_(file_bytes), content_(std::move(content)) {}
AnyFile::~AnyFile() = default;
AnyFile::AnyFile(AnyFile&&) noexcept = default;
AnyFile& AnyFile::operator=(AnyFile&&) noexcept = default;

AnyFile AnyFile::open(FileSystem& files, const std::string& path, const AnyFileOptions& options) {
  // The file is opened twice. If it changes in between, the second reader refuses what it does not expect.
  FileKind kind = recognise(files, path);
  TreeLimits limits;
  // The other limits are those of every file, so that no caller can lift them.
  limits.max_memory_bytes = options.max_memory_bytes;
  std::unique_ptr<Content> content =
      within_memory(path, [&] { return open_content(files, path, limits, kind, options.allow_unreadable); });
  return AnyFile(path, kind, files.open_for_reading(path)->size_bytes(), std::move(content));
}

const std::string& AnyFile::metadata() const {
  return content_->metadata();
}

std::span<const ArrayInfo> AnyFile::arrays() const {
  return content_->arrays();
}

std::span<const std::string> AnyFile::unreadable() const {
  return content_->unreadable();
}

// All contents sort their arrays by name.
const ArrayInfo* AnyFile::find(std::string_view name) const {
  const std::span<const ArrayInfo> all = arrays();
  const auto found = std::ranges::lower_bound(all, name, {}, &ArrayInfo::name);
  return found != all.end() && found->name == name ? &*found : nullptr;
}

std::vector<std::byte> AnyFile::read(std::string_view name) const {
  const ArrayInfo* array = find(name);
  if (array == nullptr) {
    throw Error(ErrorCode::not_found, fmt::format("{} has no array {} among its {}; \"holdfast inspect\" lists them",
                                                  path_, quoted_text(name), arrays().size()));
  }
  return content_->read(*array);
}

void AnyFile::read_pieces(const std::function<bool(const ArrayInfo&)>& wants,
                          const std::function<void(const ArrayInfo&, std::span<const std::byte>)>& take) const {
  within_memory(path_, [&] { content_->read_pieces(wants, take); });
}

const ArrayFile* AnyFile::array_file() const {
  return content_->array_file();
}

ArraySet AnyFile::read_all(const std::function<void(std::uint64_t done, std::uint64_t total)>& progress) const {
  return within_memory(path_, [&] {
    // Progress counts bytes, since a few arrays hold most of them.
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
