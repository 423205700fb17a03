// The file is a CacheFile whose samples are blocks of numbers: whole or absent, with a digest of each block. Nothing in
// it is a decision of a stage: bucketed() keeps lengths, so other bounds need no other pass. See
// docs/decisions/caches.md.

#include "data/passes/sample_index.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>

#include "data/kept/cache_file.h"
#include "data/kept/folder_lock.h"
#include "data/stages/user_function.h"

namespace holdfast {
namespace {

// A block has one digest of 16 bytes, and is read by one call.
constexpr std::int64_t kNumbersOfBlock = 1024;

class SampleNumbers {
 public:
  SampleNumbers(const Stage& before, const SampleScan& scan,
                const std::function<std::int64_t(const SampleArrays&)>& number_of)
      : before_(before),
        scan_(scan),
        number_of_(number_of),
        inputs_(before.feature_words()),
        targets_(before.target_words()) {}

  std::int64_t of(std::int64_t position) {
    // Epoch 0 with seed 0 stands for all. A map before that draws is judged by these draws alone.
    before_.load(0, 0, position, {.features = inputs_, .targets = targets_});
    const SampleArrays sample{.inputs = {before_.layouts().inputs, inputs_},
                              .targets = {before_.layouts().targets, targets_}};
    return call_for_sample([&] { return name_of_sample(before_, 0, 0, position); }, scan_.stage, scan_.name,
                           [&] { return number_of_(sample); });
  }

 private:
  const Stage& before_;
  const SampleScan& scan_;
  const std::function<std::int64_t(const SampleArrays&)>& number_of_;
  std::vector<float> inputs_;
  std::vector<float> targets_;
};

// What the numbers depend on, but for the code of the function.
std::string text_of_index(const Stage& before, const SampleScan& scan) {
  const nlohmann::ordered_json text = {
      {"index", scan.stage}, {"name", scan.name}, {"samples", text_of_samples(before)}};
  return text.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace

std::vector<std::int64_t> numbers_of_samples(const Stage& before, const SampleScan& scan,
                                             const std::function<std::int64_t(const SampleArrays&)>& number_of) {
  SampleNumbers numbers(before, scan, number_of);
  const std::int64_t size = before.size();
  std::vector<std::int64_t> found(static_cast<std::size_t>(size));
  if (scan.index.empty()) {
    for (std::int64_t position = 0; position < size; ++position) {
      found[static_cast<std::size_t>(position)] = numbers.of(position);
    }
    return found;
  }
  const auto make_block = [&](std::int64_t block, std::span<std::byte> bytes) {
    std::vector<std::int64_t> made(static_cast<std::size_t>(kNumbersOfBlock));
    const std::int64_t first = block * kNumbersOfBlock;
    for (std::int64_t i = 0; i < std::min(kNumbersOfBlock, size - first); ++i) {
      made[static_cast<std::size_t>(i)] = numbers.of(first + i);
    }
    std::ranges::copy(std::as_bytes(std::span(made)), bytes.begin());
  };
  const std::int64_t blocks = (size + kNumbersOfBlock - 1) / kNumbersOfBlock;
  // Held until the numbers are read, so that one process makes the pass. CacheFile makes the file unless it is there by
  // then.
  const std::unique_ptr<FolderLock> lock = lock_unless_there(posix_file_system(), scan.index);
  const CacheFile file(posix_file_system(), scan.index,
                       {.text = text_of_index(before, scan),
                        .samples = blocks,
                        .sample_bytes = static_cast<std::size_t>(kNumbersOfBlock) * sizeof(std::int64_t)},
                       make_block);
  found.resize(static_cast<std::size_t>(blocks * kNumbersOfBlock));
  const std::span<std::byte> bytes = std::as_writable_bytes(std::span(found));
  for (std::int64_t block = 0; block < blocks; ++block) {
    const std::size_t block_bytes = static_cast<std::size_t>(kNumbersOfBlock) * sizeof(std::int64_t);
    file.read(block, bytes.subspan(static_cast<std::size_t>(block) * block_bytes, block_bytes), {});
  }
  // The last block is filled up with zeros.
  found.resize(static_cast<std::size_t>(size));
  return found;
}

}  // namespace holdfast
