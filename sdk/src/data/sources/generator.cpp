// A generator has a state that no savepoint could hold. So it runs once, and what it gave is kept: a function of the
// position, as every source must be. See docs/decisions/stages.md.

#include "holdfast/data/generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/user_function.h"
#include "data/stages/stage.h"
#include "holdfast/base/digest.h"
#include "holdfast/base/error.h"
#include "holdfast/base/file_system.h"
#include "holdfast/base/temporary_files.h"

namespace holdfast {
namespace {

Error refused_generator(const std::string& reason) {
  return Error(ErrorCode::invalid_argument, fmt::format("from_generator(): {}", reason));
}

// Rows of all samples, one after another, in memory or in a file.
class GeneratedRows {
 public:
  GeneratedRows(const std::string& folder, std::size_t row_words) : row_words_(row_words) {
    if (folder.empty()) return;
    // The file has a name for a moment only. Nothing is left over if the process
    // dies later, and no second run finds it.
    const std::string path = temporary_path(path_in_folder(folder, "samples"));
    file_ = posix_file_system().create(path);
    // The open file stays, and the kernel frees it however this process ends.
    posix_file_system().remove(path);
  }

  void add(std::span<const float> row) {
    const std::span<const std::byte> bytes = std::as_bytes(row);
    all_.update(bytes);
    ++size_;
    if (file_ == nullptr) {
      memory_.insert(memory_.end(), row.begin(), row.end());
      return;
    }
    // Each row has a digest, because a disk may give back other bytes than it took. Memory needs none.
    digests_.push_back(digest(bytes));
    waiting_.insert(waiting_.end(), row.begin(), row.end());
    // Rows are collected, as small ones would be a call of the kernel each.
    if (waiting_.size() * sizeof(float) >= kWrittenBytes) write();
  }

  // Returns the digest of all rows. No row can be added afterwards.
  Digest finish() {
    if (file_ != nullptr) write();
    memory_.shrink_to_fit();
    return all_.finish();
  }

  void read(std::int64_t position, std::span<float> row) const {
    const std::size_t first = static_cast<std::size_t>(position) * row_words_;
    if (file_ == nullptr) {
      std::ranges::copy(std::span(memory_).subspan(first, row_words_), row.begin());
      return;
    }
    const std::span<std::byte> bytes = std::as_writable_bytes(row);
    // At a place of its own and not at a cursor of the file, so several threads read at once.
    const std::size_t count = file_->read_at(first * sizeof(float), bytes);
    if (count == bytes.size() && digest(bytes) == digests_[static_cast<std::size_t>(position)]) return;
    throw Error(ErrorCode::invalid_file,
                fmt::format("sample {} of a generator is damaged in its file: the disk does not give back what was "
                            "written; start again with another spill_folder",
                            position));
  }

  std::int64_t size() const { return size_; }

 private:
  static constexpr std::size_t kWrittenBytes = std::size_t{1} << 20;

  void write() {
    const std::span<const std::byte> bytes = std::as_bytes(std::span(waiting_));
    file_->write_at(written_bytes_, bytes);
    written_bytes_ += bytes.size();
    waiting_.clear();
  }

  std::size_t row_words_;
  std::int64_t size_ = 0;
  DigestBuilder all_;
  std::vector<float> memory_;  // without a file
  std::unique_ptr<File> file_;
  std::vector<Digest> digests_;  // of the rows in the file
  std::vector<float> waiting_;   // rows that are not in the file yet
  std::uint64_t written_bytes_ = 0;
};

class GeneratedSource : public SourceStage {
 public:
  GeneratedSource(SampleLayouts layouts, GeneratedRows rows)
      : SourceStage(std::move(layouts), rows.size()), rows_(std::move(rows)), digest_(rows_.finish()) {}

  void load(std::uint64_t, std::int64_t, std::int64_t position, Sample destination) const override {
    std::vector<float> row(feature_words() + target_words());
    rows_.read(position, row);
    const auto targets = row.begin() + static_cast<std::ptrdiff_t>(feature_words());
    std::copy(row.begin(), targets, destination.features.begin());
    std::copy(targets, row.end(), destination.targets.begin());
  }
  std::string content() const override { return fmt::format("generated {} {}", size(), digest_.hex()); }
  void describe(nlohmann::ordered_json& stages) const override {
    stages.push_back({{"kind", "generator"}, {"digest", digest_.hex()}});
  }

 private:
  GeneratedRows rows_;
  Digest digest_;
};

}  // namespace

Dataset from_generator(GeneratorOptions options, const Generator& next) {
  if (options.inputs.empty()) throw refused_generator("needs at least one input");
  if (!next) throw refused_generator("was given an empty function");
  SampleLayouts layouts{.inputs = RowLayout(std::move(options.inputs)),
                        .targets = RowLayout(std::move(options.targets))};
  std::vector<float> row(layouts.inputs.words() + layouts.targets.words());
  const Sample sample{.features = std::span(row).first(layouts.inputs.words()),
                      .targets = std::span(row).subspan(layouts.inputs.words())};
  const SampleArrays arrays{.inputs = {layouts.inputs, sample.features}, .targets = {layouts.targets, sample.targets}};
  const auto row_bytes = static_cast<std::int64_t>(row.size() * sizeof(float));
  GeneratedRows rows(options.spill_folder, row.size());
  const auto gives_next = [&] {
    return call_for_sample([&] { return fmt::format("sample {}", rows.size()); }, "from_generator()", {},
                           [&] { return next(arrays); });
  };
  // The row is given to the function again for each sample. It is cleared in between, so words that the function leaves
  // out are 0, and what it wrote before it returned false is dropped.
  while (gives_next()) {
    check_integers(layouts, sample, rows.size());
    // Written without a product that could overflow: the rows so far are within the limit.
    if (rows.size() >= options.max_samples || row_bytes > options.max_bytes - rows.size() * row_bytes) {
      throw refused_generator(
          fmt::format("gave more than {} samples of {} bytes, which max_samples ({}) or max_bytes "
                      "({}) does not allow; raise it, or give a spill_folder",
                      rows.size(), row_bytes, options.max_samples, options.max_bytes));
    }
    rows.add(row);
    std::ranges::fill(row, 0.0F);
  }
  if (rows.size() == 0) throw refused_generator("gave no sample");
  return Dataset(std::make_shared<GeneratedSource>(std::move(layouts), std::move(rows)));
}

}  // namespace holdfast
