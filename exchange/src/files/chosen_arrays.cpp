// One class for each kind of file, as in any_file.cpp, but nothing is asked of arrays that were not chosen. HDF5 is
// parsed once for names and shapes, so that a missing array is named before anything large is read, and again for
// elements. docs/decisions/array-files.md

#include "holdfast/format/exchange/chosen_arrays.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "bytes/array_checks.h"
#include "bytes/byte_source.h"
#include "foreign_hdf5/foreign_file.h"
#include "holdfast/base/error.h"
#include "holdfast/format/exchange/any_file.h"
#include "numpy/npy_file.h"
#include "numpy/npz_file.h"
#include "safetensors/safetensors_file.h"

namespace holdfast::format {

class ChosenArrays::Content {
 public:
  virtual ~Content() = default;
  // The index is that of `infos`, which the constructor fills, in the order of the names that were asked for.
  virtual std::vector<std::byte> read(std::size_t index) const = 0;
  virtual std::optional<StoredElements> stored(std::size_t index) const = 0;

  std::vector<ArrayInfo> infos;
};

namespace {

ArrayInfo info_of(std::string name, const NpyHeader& header) {
  return {.name = std::move(name), .dtype = header.dtype, .shape = header.shape, .digest = {}};
}

// Column-major elements of one axis are row-major too.
std::optional<StoredElements> stored_elements(const NpyHeader& header, std::uint64_t file_offset) {
  // Rows of a column-major array do not lie one after another, so none can be read by itself.
  if (header.is_fortran && header.shape.size() > 1) return {};
  return StoredElements{.offset = file_offset + header.data_offset, .is_big_endian = header.is_big_endian};
}

class NpyContent : public ChosenArrays::Content {
 public:
  NpyContent(FileSystem& files, const std::string& path, const std::vector<std::string>& names)
      : source_(files, path), file_(source_) {
    for (const std::string& name : names) {
      // The file has one array, and no place for a name. Another name was meant for another file.
      if (!name.empty()) {
        throw Error(ErrorCode::not_found,
                    fmt::format("{} has no array {}: a .npy file has one array, without a name; ask for it without one",
                                path, quoted_text(name)));
      }
      infos.push_back(info_of("", file_.entries()[0].header));
    }
  }

  std::vector<std::byte> read(std::size_t) const override { return file_.read(file_.entries()[0]).bytes; }
  std::optional<StoredElements> stored(std::size_t) const override {
    return stored_elements(file_.entries()[0].header, 0);
  }

 private:
  FileSource source_;
  NpyFile file_;
};

// Members that are deflated have no place in the file from which rows could be read, so they are read as a whole.
class ChosenNpz : public ChosenArrays::Content {
 public:
  ChosenNpz(FileSystem& files, const std::string& path, const std::vector<std::string>& names)
      : source_(files, path), file_(source_, names) {
    // In the order of `names`, by which a caller asks for them.
    for (const NpzFile::Entry& entry : file_.entries()) infos.push_back(info_of(entry.name, entry.header));
  }

  std::vector<std::byte> read(std::size_t index) const override { return file_.read(file_.entries()[index]).bytes; }
  std::optional<StoredElements> stored(std::size_t index) const override {
    const NpzFile::Entry& entry = file_.entries()[index];
    if (entry.member.is_deflated) return {};
    return stored_elements(entry.header, entry.member.data_offset);
  }

 private:
  FileSource source_;
  NpzFile file_;
};

class ChosenSafetensors : public ChosenArrays::Content {
 public:
  ChosenSafetensors(FileSystem& files, const std::string& path, const std::vector<std::string>& names)
      : source_(files, path), file_(source_, UnknownTypes::keep) {
    for (const std::string& name : names) {
      // The reader has sorted its entries by name, and keeps them where they are.
      const auto found = std::ranges::lower_bound(file_.entries(), name, {}, &SafetensorsEntry::name);
      if (found == file_.entries().end() || found->name != name) {
        std::vector<std::string> present;
        for (const SafetensorsEntry& entry : file_.entries()) present.push_back(entry.name);
        refuse_missing(path, name, std::move(present));
      }
      // Only now: other arrays of the file may have types that nobody here knows.
      if (!found->unknown_type.empty()) refuse_unknown_type(path, name, found->unknown_type);
      entries_.push_back(&*found);
      infos.push_back({.name = name, .dtype = found->dtype, .shape = found->shape, .digest = {}});
    }
  }

  std::vector<std::byte> read(std::size_t index) const override { return file_.read(*entries_[index]); }
  std::optional<StoredElements> stored(std::size_t index) const override {
    return StoredElements{.offset = file_.offset(*entries_[index])};
  }

 private:
  FileSource source_;
  SafetensorsFile file_;
  std::vector<const SafetensorsEntry*> entries_;
};

// A file of Holdfast is HDF5 too. Its own reader checks digests, which HDF5 knows nothing of.
class ChosenSavepoint : public ChosenArrays::Content {
 public:
  ChosenSavepoint(FileSystem& files, const std::string& path, const std::vector<std::string>& names)
      : file_(ArrayFile::open(files, path)) {
    for (const std::string& name : names) {
      const auto found = std::ranges::find(file_.arrays(), name, &ArrayInfo::name);
      if (found == file_.arrays().end()) {
        std::vector<std::string> present;
        for (const ArrayInfo& array : file_.arrays()) present.push_back(array.name);
        refuse_missing(path, name, std::move(present));
      }
      infos.push_back(*found);
    }
  }

  std::vector<std::byte> read(std::size_t index) const override { return file_.read(infos[index].name); }
  std::optional<StoredElements> stored(std::size_t) const override { return {}; }

 private:
  ArrayFile file_;
};

// Elements may lie in chunks, compressed or not, so stored() says nothing: rows are not read from the file itself.
class ChosenHdf5 : public ChosenArrays::Content {
 public:
  ChosenHdf5(FileSystem& files, const std::string& path, const std::vector<std::string>& names,
             const ChosenOptions& options)
      : max_bytes_(options.max_bytes), file_(files, path, limits_for(options), TreeDemand::readable) {
    // Names and shapes alone: the helper leaves out the elements.
    const Hdf5Tree tree = file_.read_heads();
    for (const std::string& name : names) {
      // h5py's users write "/x" as well.
      paths_.push_back(name.starts_with('/') ? name.substr(1) : name);
      const Hdf5Dataset* dataset = tree.find_dataset(paths_.back());
      if (dataset == nullptr) refuse(path, paths_.back(), tree);
      infos.push_back({.name = name, .dtype = dataset->array.dtype, .shape = dataset->array.shape, .digest = {}});
    }
  }

  std::vector<std::byte> read(std::size_t index) const override {
    // Handed over rather than copied, so that no array is in memory twice.
    auto elements = waiting_.extract(paths_[index]);
    if (elements.empty()) {
      read_together(index);
      elements = waiting_.extract(paths_[index]);
    }
    return std::move(elements.mapped());
  }
  std::optional<StoredElements> stored(std::size_t) const override { return {}; }

 private:
  // The whole file must be in memory to be parsed, so the caller's limit is that of the file.
  static TreeLimits limits_for(const ChosenOptions& options) {
    TreeLimits limits;
    limits.max_memory_bytes = options.max_bytes;
    return limits;
  }

  [[noreturn]] static void refuse(const std::string& path, const std::string& name, const Hdf5Tree& tree) {
    const auto unreadable = std::ranges::find(tree.unreadable, name, &Hdf5Unreadable::path);
    if (unreadable != tree.unreadable.end()) {
      throw Error(ErrorCode::unsupported, fmt::format("{} has an array that cannot be read: {}; store it as a plain "
                                                      "array of numbers",
                                                      path, unreadable->problem));
    }
    if (tree.find_text(name) != nullptr || tree.find_group(name) != nullptr) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{} in {} is {}, not an array; \"holdfast inspect\" lists the arrays", quoted_text(name),
                              path, tree.find_text(name) != nullptr ? "a text" : "a group"));
    }
    std::vector<std::string> present;
    for (const Hdf5Dataset& dataset : tree.datasets) present.push_back(dataset.array.name);
    refuse_missing(path, name, std::move(present));
  }

  // The helper parses the file from its start for each call, so small arrays that follow one another are read in one.
  // Large ones are read alone: the others would wait in memory that nobody has asked for.
  void read_together(std::size_t index) const {
    constexpr std::uint64_t kMostBytes = std::uint64_t{64} << 20;
    constexpr std::size_t kMostArrays = 256;  // paths are arguments of a program, whose length has a limit
    const std::uint64_t most = std::min(kMostBytes, max_bytes_);
    std::uint64_t bytes = size_bytes(infos[index]);
    std::size_t end = index + 1;
    for (; end < infos.size() && end - index < kMostArrays && bytes <= most; ++end) {
      const std::uint64_t next = size_bytes(infos[end]);
      if (next > most - bytes) break;
      bytes += next;
    }
    waiting_.clear();
    const std::vector<std::string> paths(paths_.begin() + static_cast<std::ptrdiff_t>(index),
                                         paths_.begin() + static_cast<std::ptrdiff_t>(end));
    Hdf5Tree tree = file_.read_datasets(paths);
    for (Hdf5Dataset& dataset : tree.datasets) waiting_[dataset.array.name] = std::move(dataset.array.bytes);
  }

  std::uint64_t max_bytes_;
  ForeignHdf5 file_;
  std::vector<std::string> paths_;
  // Elements that came with those of an earlier array, by path. Without a lock: an object belongs to one thread at a
  // time.
  mutable std::map<std::string, std::vector<std::byte>> waiting_;
};

std::unique_ptr<ChosenArrays::Content> open_chosen(FileSystem& files, const std::string& path, ArrayFileKind kind,
                                                   const std::vector<std::string>& names,
                                                   const ChosenOptions& options) {
  // The reader of another kind would only say that the file is damaged.
  const ArrayFileKind actual = recognise_array_file(files, path);
  if (actual != kind) {
    throw Error(ErrorCode::invalid_file, fmt::format("{} is not a file of kind {}: its content is {}; use the reader "
                                                     "of that kind",
                                                     path, name(kind), name(actual)));
  }
  switch (kind) {
    case ArrayFileKind::npy:
      return std::make_unique<NpyContent>(files, path, names);
    case ArrayFileKind::npz:
      return std::make_unique<ChosenNpz>(files, path, names);
    case ArrayFileKind::safetensors:
      return std::make_unique<ChosenSafetensors>(files, path, names);
    case ArrayFileKind::hdf5:
      break;
  }
  if (recognise(files, path) == FileKind::holdfast) return std::make_unique<ChosenSavepoint>(files, path, names);
  return std::make_unique<ChosenHdf5>(files, path, names, options);
}

}  // namespace

std::string_view name(ArrayFileKind kind) {
  constexpr std::array<std::string_view, 4> kNames = {".npy", ".npz", "safetensors", "HDF5"};
  return kNames[static_cast<std::size_t>(kind)];
}

ArrayFileKind recognise_array_file(FileSystem& files, const std::string& path) {
  switch (recognise(files, path)) {
    case FileKind::npy:
      return ArrayFileKind::npy;
    case FileKind::safetensors:
      return ArrayFileKind::safetensors;
    case FileKind::npz:
      return ArrayFileKind::npz;
    case FileKind::keras:
      throw Error(
          ErrorCode::unsupported,
          fmt::format("{} is a model of Keras, not a file of arrays; convert it with \"holdfast convert\"", path));
    case FileKind::holdfast:
    case FileKind::hdf5:
      break;
  }
  return ArrayFileKind::hdf5;
}

ChosenArrays::ChosenArrays(FileSystem& files, const std::string& path, ArrayFileKind kind,
                           const std::vector<std::string>& names, const ChosenOptions& options)
    : path_(path),
      options_(options),
      // An allocation that fails becomes an error that names the file.
      content_(within_memory(path, [&] { return open_chosen(files, path, kind, names, options); })) {}

ChosenArrays::~ChosenArrays() = default;
// Out of line, since Content is complete in this source alone.
ChosenArrays::ChosenArrays(ChosenArrays&&) noexcept = default;
ChosenArrays& ChosenArrays::operator=(ChosenArrays&&) noexcept = default;

std::span<const ArrayInfo> ChosenArrays::arrays() const {
  return content_->infos;
}

std::vector<std::byte> ChosenArrays::read(std::size_t index) const {
  // Before any memory is taken: a header may promise more than the machine has.
  const std::uint64_t bytes = size_bytes(content_->infos[index]);
  if (bytes > options_.max_bytes) {
    throw Error(ErrorCode::out_of_memory,
                fmt::format("array {} of {} takes {} bytes, and {} are allowed; raise the limit if you trust the file",
                            quoted_text(content_->infos[index].name), path_, bytes, options_.max_bytes));
  }
  return within_memory(path_, [&] { return content_->read(index); });
}

std::optional<StoredElements> ChosenArrays::stored(std::size_t index) const {
  return content_->stored(index);
}

}  // namespace holdfast::format
