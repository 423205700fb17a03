// Everything is computed at once, and not as samples are asked for: a shuffled batch touches as many blocks as it has
// samples, and would take longer than a replica may read data. See docs/decisions/caches.md.

#include "holdfast/data/cached_outputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "data/cache/output_blocks.h"
#include "data/kept/cache_file.h"
#include "data/kept/folder_lock.h"
#include "holdfast/base/error.h"
#include "nn/model/description.h"
#include "nn/program/model_program.h"

namespace holdfast {
namespace {

// Numbers above these are mistakes, and would take memory before anything is computed.
constexpr int kMostOutputThreads = 256;
constexpr std::int64_t kMostBlockSamples = std::int64_t{1} << 20;

class CachedOutputsStage final : public ChainedStage {
 public:
  CachedOutputsStage(const std::shared_ptr<const Stage>& before, const Model& part, const CachedOutputsOptions& options)
      : ChainedStage(before, layouts_of_outputs(part, *before), before->size()),
        block_(options.block),
        arithmetic_(ModelProgram(part, 1).arithmetic()),
        model_digest_(text_digest(part.graph())),
        weights_digest_(weights_digest(part)) {
    // Lives in the constructor only: after it, neither the model nor its workers are needed, and the model may change.
    OutputBlocks blocks(part, this->before(), block_, options.threads);
    if (options.file.empty()) {
      compute_to_memory(blocks);
    } else {
      open_file(blocks, options);
    }
  }

  void load(std::uint64_t, std::int64_t, std::int64_t position, Sample destination) const override {
    // Rows in memory never change after the constructor, so any thread reads them without a lock.
    if (!file_) return copy_row(std::span(rows_).subspan(first_word_of(position), row_words()), destination);
    std::vector<float> row(row_words());
    file_->read(position, std::as_writable_bytes(std::span(row)), {});
    copy_row(row, destination);
  }
  const Stage* source() const override { return nullptr; }
  SampleOrigin origin(std::uint64_t seed, std::int64_t epoch, std::int64_t position) const override {
    return before().origin(seed, epoch, position);
  }
  StageKind kind() const override { return StageKind::feature_map; }
  // Equal models make equal features of equal samples.
  // The name is what tells whether two data sets have the same samples, as that of a map() does.
  std::string map_name() const override { return fmt::format("outputs of {}{}", model_digest_, weights_digest_); }
  void describe(nlohmann::ordered_json& stages) const override {
    before().describe(stages);
    stages.push_back({{"kind", "outputs"}, {"model", model_digest_}, {"weights", weights_digest_}, {"block", block_}});
  }

 private:
  static std::string text_digest(const std::string& text) { return digest(std::as_bytes(std::span(text))).hex(); }
  // Without padding, and in the order of the layers: equal weights have equal digests.
  static std::string weights_digest(const Model& part) {
    return text_digest(part.parameters().digest(part.parameter_values()).hex() +
                       part.buffers().digest(part.buffer_values()).hex());
  }

  std::size_t row_words() const { return feature_words() + target_words(); }
  std::size_t first_word_of(std::int64_t position) const { return static_cast<std::size_t>(position) * row_words(); }

  void copy_row(std::span<const float> row, Sample destination) const {
    std::ranges::copy(row.first(feature_words()), destination.features.begin());
    std::ranges::copy(row.subspan(feature_words()), destination.targets.begin());
  }

  void compute_to_memory(OutputBlocks& blocks) {
    try {
      // At once and before anything is computed: a lack of memory should not be found after hours.
      rows_.resize(static_cast<std::size_t>(size()) * row_words());
    } catch (const std::bad_alloc&) {
      throw Error(ErrorCode::out_of_memory,
                  fmt::format("cached_outputs() of {} samples of {} bytes does not fit into memory; give it a file",
                              size(), row_words() * sizeof(float)));
    }
    for (std::int64_t i = 0; i < size(); ++i) {
      blocks.write_row(i, std::span(rows_).subspan(first_word_of(i), row_words()));
    }
  }

  void open_file(OutputBlocks& blocks, const CachedOutputsOptions& options) {
    FileSystem& files = posix_file_system();
    // A process that waits here finds the file of the other one, and computes nothing. After the deadline it computes
    // all by itself: the lock only saves work. It is given back at the end of this function.
    const std::unique_ptr<FolderLock> lock = lock_unless_there(files, options.file, options.wait);
    // One row is enough: CacheFile has one thread here, as write_row() must be called in the order of the samples.
    std::vector<float> row(row_words());
    file_.emplace(files, options.file,
                  CacheContent{.text = text(), .samples = size(), .sample_bytes = row_words() * sizeof(float)},
                  [&](std::int64_t position, std::span<std::byte> bytes) {
                    blocks.write_row(position, row);
                    std::ranges::copy(std::as_bytes(std::span(row)), bytes.begin());
                  });
  }

  // Everything that the bits of the samples depend on.
  std::string text() const {
    nlohmann::ordered_json stages = nlohmann::ordered_json::array();
    describe(stages);
    const nlohmann::ordered_json all = {{"size", size()},
                                        {"inputs", json_of(layouts().inputs)},
                                        {"targets", json_of(layouts().targets)},
                                        // The description of a run has it elsewhere (arithmetic.txt).
                                        {"arithmetic", arithmetic_},
                                        {"stages", std::move(stages)}};
    return all.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  }

  const std::int64_t block_;
  const std::string arithmetic_;
  const std::string model_digest_;
  const std::string weights_digest_;
  std::vector<float> rows_;  // [size, row_words()], without a file
  std::optional<CacheFile> file_;
};

[[noreturn]] void refuse_outputs(const std::string& sentence) {
  throw Error(ErrorCode::invalid_argument, fmt::format("cached_outputs() {}", sentence));
}

// Compares by position, shape and type. Names need not match, as in training: plain data sets have none.
void check_arrays(const Model& part, const Dataset& data) {
  const auto listed = [](const auto& arrays, const auto& spec_of) {
    std::vector<std::string> texts;
    for (const auto& array : arrays) texts.push_back(spec_of(array).to_string());
    return fmt::format("{}", fmt::join(texts, ", "));
  };
  const auto spec_of_model = [](const ModelArray& array) {
    return ArraySpec{.name = array.name, .shape = array.spec.shape, .dtype = array.spec.dtype};
  };
  const bool fits = std::ranges::equal(part.inputs(), data.inputs(), [](const ModelArray& wanted, const auto& given) {
    return wanted.spec.shape == given.shape && wanted.spec.dtype == given.dtype;
  });
  if (fits) return;
  refuse_outputs(fmt::format("got samples of {}, and the model takes {}",
                             listed(data.inputs(), [](const ArraySpec& spec) { return spec; }),
                             listed(part.inputs(), spec_of_model)));
}

void check_outputs(const Model& part, const Dataset& data, const CachedOutputsOptions& options) {
  if (!part.has_weights()) refuse_outputs("got a model without weights; load or train it first");
  check_arrays(part, data);
  if (data.batch_size() > 0 || data.prefetch_depth() > 0 || data.is_kept_on_device()) {
    refuse_outputs("got a data set in batches; put batch(), prefetch() and keep_on_device() after it");
  }
  if (!data.last_stage()->is_same_in_all_epochs()) {
    refuse_outputs(
        "got samples that may differ from epoch to epoch: put shuffle(), mixup(), cutmix(), and each map() that may "
        "draw after "
        "it");
  }
  if (options.block < 1 || options.block > kMostBlockSamples || options.threads < 0 ||
      options.threads > kMostOutputThreads) {
    refuse_outputs(fmt::format("of blocks of {} samples on {} threads: use 1 to {} samples, and 0 to {} threads",
                               options.block, options.threads, kMostBlockSamples, kMostOutputThreads));
  }
}

}  // namespace

Dataset cached_outputs(const Model& part, const Dataset& data, const CachedOutputsOptions& options) {
  check_outputs(part, data, options);
  CachedOutputsOptions settled = options;
  // Settled here, once. It is not a part of the description, since no bit depends on it.
  if (settled.threads == 0) settled.threads = std::min(compute::default_threads(), kMostOutputThreads);
  return Dataset(std::make_shared<CachedOutputsStage>(data.last_stage(), part, settled));
}

}  // namespace holdfast
