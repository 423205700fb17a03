#include <utility>

#include "hdf5/tree.h"
#include "hdf5/tree_parser.h"
#include "holdfast/base/error.h"

namespace holdfast::format {
namespace {

class TreeBuilder : public TreeSink {
 public:
  void add_group(Hdf5Group group) override { tree_.groups.push_back(std::move(group)); }
  void add_dataset(Hdf5Dataset dataset, std::uint64_t bytes) override {
    dataset.array.bytes.reserve(bytes);
    tree_.datasets.push_back(std::move(dataset));
  }
  void add_elements(std::span<const std::byte> bytes) override {
    std::vector<std::byte>& elements = tree_.datasets.back().array.bytes;
    elements.insert(elements.end(), bytes.begin(), bytes.end());
  }

  Hdf5Tree take() { return std::move(tree_); }

 private:
  Hdf5Tree tree_;
};

}  // namespace

Hdf5Tree read_hdf5_tree(std::span<const std::byte> file, const std::string& label, const TreeLimits& limits) {
  TreeBuilder builder;
  try {
    parse_hdf5_tree(file, limits, builder);
  } catch (const Error& error) {
    throw Error(error.code(), label + " is refused: " + error.what() +
                                  "; let the program that made it write a plain file, or use another copy");
  }
  return builder.take();
}

Hdf5Tree read_hdf5_tree(FileSystem& files, const std::string& path, const TreeLimits& limits) {
  const std::unique_ptr<File> file = files.open_for_reading(path);
  std::vector<std::byte> bytes(file->size_bytes());
  bytes.resize(file->read_at(0, bytes));
  return read_hdf5_tree(bytes, path, limits);
}

}  // namespace holdfast::format
