// Reads an HDF5 file of another program in three steps: copy it into shared memory, check its structure, and let a
// sandboxed process parse the copy. Parser and checks see the same bytes even if the file changes meanwhile, and a
// fault of the parser cannot harm this process. Reasons: docs/decisions/exchange.md.

#include "foreign_hdf5/foreign_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <new>
#include <optional>
#include <set>
#include <utility>

#include "bytes/byte_source.h"
#include "foreign_hdf5/foreign_check.h"
#include "foreign_hdf5/reader_process.h"
#include "foreign_hdf5/tree_stream.h"
#include "holdfast/base/error.h"

namespace holdfast::format {
namespace {

std::vector<std::string> reader_arguments(const TreeLimits& limits, const TreeDecodeOptions& options) {
  return {std::to_string(::getpid()),
          std::to_string(limits.max_array_bytes),
          std::to_string(limits.max_objects),
          std::to_string(limits.time.count()),
          std::to_string(limits.max_memory_bytes),
          options.heads_only ? "heads" : "all",
          options.is_partial ? "readable" : "whole"};
}

// Says how the helper ended. SIGSYS comes from the sandbox, SIGXCPU from its limit.
std::string describe(const std::optional<ReaderExit>& exit) {
  if (!exit) return "another part of this process collected its exit status";
  if (exit->signal == SIGSYS) return "it tried a forbidden system call";
  if (exit->signal == SIGXCPU) return "it used too much processor time";
  if (exit->signal != 0) return fmt::format("signal {}, {}", exit->signal, ::strsignal(exit->signal));
  return fmt::format("exit code {}", exit->code);
}

// A helper that ends early was killed by the sandbox or by a fault of the parser. Both count as a fault of the file.
// With `paths`, it sends the datasets of these paths alone.
Hdf5Tree read_through_helper(const SharedMemory& file, const TreeLimits& limits, const TreeDecodeOptions& options,
                             const std::vector<std::string>& paths = {}) {
  std::vector<std::string> arguments = reader_arguments(limits, options);
  arguments.insert(arguments.end(), paths.begin(), paths.end());
  ReaderProcess reader(find_hdf5_reader(), std::move(arguments), file, limits.time);
  try {
    return decode_tree(reader, file.size_bytes(), limits, options);
  } catch (const ReaderEnded&) {
    throw Error(ErrorCode::invalid_file,
                fmt::format("the program that reads HDF5 files failed on it ({})", describe(reader.wait())));
  }
}

// Adds the file and the advice. `problem` says what is wrong with the file or with reading it.
Error refusal(const std::string& label, const Error& problem) {
  const bool is_the_file = problem.code() == ErrorCode::invalid_file;
  const bool is_memory = problem.code() == ErrorCode::out_of_memory;
  return Error(problem.code(),
               fmt::format("{} {}: {}{}{}", label, is_the_file ? "is refused" : "cannot be read", problem.what(),
                           is_the_file ? "; write a plain file with the program that made it, or use another copy" : "",
                           is_memory ? kAllowMoreMemory : ""));
}

// The size is checked before the memory is allocated.
// A file that is too short for HDF5 is named as such; its structure need not be looked at.
SharedMemory allocate(std::uint64_t bytes, const std::string& label, const TreeLimits& limits) {
  constexpr std::uint64_t kSmallest = 48;  // a superblock
  if (bytes < kSmallest) {
    throw Error(ErrorCode::invalid_file,
                fmt::format("{} is not an HDF5 file: it has only {} bytes; check the path", label, bytes));
  }
  if (bytes > limits.max_memory_bytes) refuse_memory(label, bytes, limits.max_memory_bytes);
  return SharedMemory::create("holdfast-hdf5", bytes);
}

}  // namespace

// Turns problems without a file name into errors that name the file.
template <typename Action>
auto ForeignHdf5::with_label(const Action& action) const {
  try {
    return action();
  } catch (const Error& error) {
    throw refusal(label_, error);
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::out_of_memory,
                fmt::format("not enough memory for the content of {}; free some memory and try again", label_));
  }
}

ForeignHdf5::ForeignHdf5(std::uint64_t bytes, const std::string& label, const TreeLimits& limits,
                         const std::function<void(std::span<std::byte>)>& fill)
    : label_(label), limits_(limits), memory_(allocate(bytes, label, limits)) {
  // The check reads the copy, not the source, so that nothing can change between check and parser.
  fill(memory_.writable());
  with_label([&] { check_foreign_hdf5(memory_.readable(), limits_, demand_); });
}

ForeignHdf5::ForeignHdf5(FileSystem& files, const std::string& path, const TreeLimits& limits, TreeDemand demand)
    : label_(path), limits_(limits), demand_(demand) {
  // The size is asked of the open file, so that both belong to one file.
  const std::unique_ptr<File> file = files.open_for_reading(path);
  memory_ = allocate(file->size_bytes(), path, limits);
  if (file->read_at(0, memory_.writable()) < memory_.size_bytes()) {
    throw Error(ErrorCode::invalid_file,
                fmt::format("{} became shorter while it was read; try again when no program writes to it", path));
  }
  with_label([&] { check_foreign_hdf5(memory_.readable(), limits_, demand_); });
}

Hdf5Tree ForeignHdf5::read() const {
  const TreeDecodeOptions options{.is_partial = demand_ == TreeDemand::readable, .announced = announced()};
  return with_label([&] { return read_through_helper(memory_, limits_, options); });
}

Hdf5Tree ForeignHdf5::read_heads() const {
  const TreeDecodeOptions options{
      .heads_only = true, .is_partial = demand_ == TreeDemand::readable, .announced = announced()};
  return with_label([&] {
    Hdf5Tree tree = read_through_helper(memory_, limits_, options);
    std::vector<NamedArray>& heads = heads_.emplace();
    for (const Hdf5Dataset& dataset : tree.datasets) heads.push_back(dataset.array);
    return tree;
  });
}

Hdf5Tree ForeignHdf5::read_datasets(const std::vector<std::string>& paths) const {
  HOLDFAST_ASSERT(demand_ == TreeDemand::readable && heads_ && !paths.empty());
  // A path may be there twice. The helper sends its dataset once.
  const std::set<std::string_view> sorted(paths.begin(), paths.end());
  std::vector<NamedArray> asked;
  for (const std::string_view path : sorted) {
    const auto head = std::ranges::lower_bound(*heads_, path, {}, &NamedArray::name);
    HOLDFAST_ASSERT(head != heads_->end() && head->name == path);
    asked.push_back(*head);
  }
  const TreeDecodeOptions options{.is_partial = true, .announced = &asked};
  return with_label([&] { return read_through_helper(memory_, limits_, options, paths); });
}

void ForeignHdf5::read_elements(
    const std::function<void(std::size_t dataset, std::span<const std::byte> elements)>& take) const {
  const TreeDecodeOptions options{
      .is_partial = demand_ == TreeDemand::readable, .take = take, .announced = announced()};
  with_label([&] { read_through_helper(memory_, limits_, options); });
}

Hdf5Tree read_hdf5_tree(std::span<const std::byte> file, const std::string& label, const TreeLimits& limits) {
  const auto fill = [&](std::span<std::byte> memory) { std::memcpy(memory.data(), file.data(), file.size()); };
  return ForeignHdf5(file.size(), label, limits, fill).read();
}

Hdf5Tree read_hdf5_tree(FileSystem& files, const std::string& path, const TreeLimits& limits) {
  return ForeignHdf5(files, path, limits).read();
}

}  // namespace holdfast::format
