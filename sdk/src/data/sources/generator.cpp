// A generator has a state that no savepoint could hold. So it runs once, and what it gave is kept: a function of the
// position, as every source must be. See docs/decisions/stages.md.

#include "holdfast/data/generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/json_text.h"
#include "data/kept/cache_file.h"
#include "data/kept/folder_lock.h"
#include "data/stages/stage.h"
#include "data/stages/user_function.h"
#include "holdfast/base/digest.h"
#include "holdfast/base/error.h"
#include "holdfast/base/file_system.h"
#include "holdfast/base/shown_text.h"
#include "holdfast/base/temporary_files.h"
#include "holdfast/base/utf8.h"

namespace holdfast {
namespace {

Error refused_generator(const std::string& reason) {
  return Error(ErrorCode::invalid_argument, fmt::format("from_generator(): {}", reason));
}

// Both limits hold in a file, too. So only a larger one helps, and where it exceeds memory, a file as well.
Error above_limit(const GeneratorOptions& options, std::int64_t samples, std::int64_t row_bytes) {
  const bool is_in_memory = options.file.empty() && options.spill_folder.empty();
  const std::string limit = samples >= options.max_samples ? fmt::format("max_samples ({})", options.max_samples)
                                                           : fmt::format("max_bytes ({})", options.max_bytes);
  return refused_generator(
      fmt::format("gave more than {} samples of {} bytes, which {} does not allow; end the generator earlier, or raise "
                  "the limit{}",
                  samples, row_bytes, limit, is_in_memory ? " and, if memory is too small, give a spill_folder" : ""));
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

  // Several threads at once.
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

// Where rows are kept does not enter the description, only their digest does.
class GeneratedSource : public SourceStage {
 public:
  using ReadRow = std::function<void(std::int64_t position, std::span<float> row)>;

  GeneratedSource(SampleLayouts layouts, std::int64_t size, std::string rows_digest, ReadRow read)
      : SourceStage(std::move(layouts), size), digest_(std::move(rows_digest)), read_(std::move(read)) {}

  void load(std::uint64_t, std::int64_t, std::int64_t position, Sample destination) const override {
    std::vector<float> row(feature_words() + target_words());
    read_(position, row);
    const auto targets = row.begin() + static_cast<std::ptrdiff_t>(feature_words());
    std::copy(row.begin(), targets, destination.features.begin());
    std::copy(targets, row.end(), destination.targets.begin());
  }
  std::string content() const override { return fmt::format("generated {} {}", size(), digest_); }
  void describe(nlohmann::ordered_json& stages) const override {
    stages.push_back({{"kind", "generator"}, {"digest", digest_}});
  }

 private:
  std::string digest_;  // of all rows
  ReadRow read_;
};

std::shared_ptr<const Stage> source_of(const SampleLayouts& layouts, GeneratedRows generated) {
  const auto rows = std::make_shared<GeneratedRows>(std::move(generated));
  std::string rows_digest = rows->finish().hex();
  return std::make_shared<GeneratedSource>(
      layouts, rows->size(), std::move(rows_digest),
      [rows](std::int64_t position, std::span<float> row) { rows->read(position, row); });
}

GeneratedRows rows_of_generator(const GeneratorOptions& options, const SampleLayouts& layouts, const Generator& next) {
  std::vector<float> row(layouts.inputs.words() + layouts.targets.words());
  const Sample sample{.features = std::span(row).first(layouts.inputs.words()),
                      .targets = std::span(row).subspan(layouts.inputs.words())};
  const SampleArrays arrays{.inputs = {layouts.inputs, sample.features}, .targets = {layouts.targets, sample.targets}};
  const auto row_bytes = static_cast<std::int64_t>(row.size() * sizeof(float));
  GeneratedRows rows(options.file.empty() ? options.spill_folder : parent_folder(options.file), row.size());
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
      throw above_limit(options, rows.size(), row_bytes);
    }
    rows.add(row);
    std::ranges::fill(row, 0.0F);
  }
  if (rows.size() == 0) throw refused_generator("gave no sample");
  return rows;
}

// The text of a file of generated samples: their arrays, and the digest of all rows, which only the writer knows.
nlohmann::ordered_json text_of_file(const SampleLayouts& layouts, const std::string& rows_digest) {
  return {{"generator", {{"inputs", json_of(layouts.inputs)}, {"targets", json_of(layouts.targets)}}},
          {"digest", rows_digest}};
}

// The text of a file is JSON, which holds UTF-8 alone, and no name in a file holds a NUL. Asked before the generator
// runs, which may take hours.
void check_names(const SampleLayouts& layouts) {
  for (const RowLayout* layout : {&layouts.inputs, &layouts.targets}) {
    for (const ArraySpec& array : layout->arrays()) {
      if (is_utf8(array.name)) continue;
      throw refused_generator(
          fmt::format("the name {} of an array is not UTF-8, or it holds a NUL, and names in a file are UTF-8 without "
                      "NUL; give the array another name, or leave out the file",
                      quoted_text(array.name)));
    }
  }
}

void write_file(const std::string& path, const SampleLayouts& layouts, GeneratedRows rows) {
  const std::string text = text_of_file(layouts, rows.finish().hex()).dump();
  const std::size_t words = layouts.inputs.words() + layouts.targets.words();
  std::vector<float> row(words);
  const CacheFile file(posix_file_system(), path,
                       {.text = text, .samples = rows.size(), .sample_bytes = words * sizeof(float)},
                       [&](std::int64_t position, std::span<std::byte> bytes) {
                         rows.read(position, row);
                         std::ranges::copy(std::as_bytes(std::span(row)), bytes.begin());
                       });
}

std::shared_ptr<const Stage> source_of_file(const std::string& path, const SampleLayouts& layouts) {
  const auto file = std::make_shared<CacheFile>(posix_file_system(), path);
  const CacheContent& content = file->content();
  const auto refuse = [&] {
    throw Error(ErrorCode::incompatible,
                fmt::format("from_generator(): the file {} has other samples ({}) than the options say; remove it, or "
                            "name another one",
                            quoted_path(path), shown_text(content.text)));
  };
  // The text of a file may be anything. One that is nested too deep is not parsed, because the library copies by
  // recursion.
  const nlohmann::ordered_json text = is_deep_json(content.text)
                                          ? nlohmann::ordered_json()
                                          : nlohmann::ordered_json::parse(content.text, nullptr, false);
  const std::size_t words = layouts.inputs.words() + layouts.targets.words();
  if (!text.is_object() || !text.contains("digest") || !text["digest"].is_string()) refuse();
  const auto rows_digest = text["digest"].get<std::string>();
  if (text != text_of_file(layouts, rows_digest) || content.sample_bytes != words * sizeof(float)) refuse();
  return std::make_shared<GeneratedSource>(
      layouts, content.samples, rows_digest,
      [file](std::int64_t position, std::span<float> row) { file->read(position, std::as_writable_bytes(row), {}); });
}

}  // namespace

Dataset from_generator(GeneratorOptions options, const Generator& next) {
  if (options.inputs.empty()) throw refused_generator("needs at least one input");
  if (!next) throw refused_generator("was given an empty function");
  if (!options.file.empty() && !options.spill_folder.empty()) {
    throw refused_generator("was given a file and a spill_folder; a file keeps all samples, so leave out the other");
  }
  const SampleLayouts layouts{.inputs = RowLayout(options.inputs), .targets = RowLayout(options.targets)};
  if (options.file.empty()) {
    return Dataset(source_of(layouts, rows_of_generator(options, layouts, next)));
  }
  check_names(layouts);
  // One process of a host runs its generator, and the others wait for the file.
  const std::unique_ptr<FolderLock> lock = lock_unless_there(posix_file_system(), options.file);
  // Looked for again with the lock: the process that had it has mostly made the file.
  if (!posix_file_system().exists(options.file)) {
    write_file(options.file, layouts, rows_of_generator(options, layouts, next));
  }
  return Dataset(source_of_file(options.file, layouts));
}

}  // namespace holdfast
