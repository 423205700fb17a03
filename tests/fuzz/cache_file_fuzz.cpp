// Reads files of cached samples. A sample that was accepted has the bytes of the file and the digest in its index. The
// first byte of the input says what the reader asks for, and whether the digest of the head is made right: no mutation
// would find it, and what lies after that comparison would never be read.

#include <algorithm>
#include <vector>

#include "data/kept/cache_file.h"
#include "fuzz_input.h"
#include "holdfast/base/digest.h"
#include "memory_file.h"

using namespace holdfast;

constexpr std::size_t kDigestBegin = 8;
constexpr std::size_t kNumbersBegin = kDigestBegin + sizeof(Digest::bytes);
constexpr std::size_t kTextBegin = kNumbersBegin + 3 * sizeof(std::uint64_t);

static void make_digest_right(std::vector<std::uint8_t>& file, std::size_t first_sample) {
  if (file.size() < first_sample) return;
  const std::span<const std::uint8_t> head = std::span(file).first(first_sample).subspan(kNumbersBegin);
  std::ranges::copy(digest(std::as_bytes(head)).bytes, file.begin() + kDigestBegin);
}

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::uint8_t choice = data[0];
  const CacheContent content{.text = "made of this", .samples = choice % 4, .sample_bytes = choice / 4 % 8U};
  const std::size_t index_begin = kTextBegin + content.text.size();
  const std::size_t first_sample = index_begin + static_cast<std::size_t>(content.samples) * sizeof(Digest::bytes);
  std::vector<std::uint8_t> bytes(data + 1, data + size);
  if (choice >= 128) make_digest_right(bytes, first_sample);
  const fuzz::MemoryFile file(bytes);
  fuzz::succeeds([&] {
    // As for samples that a generator gave: what the file says of itself fits its size.
    const CacheFile unknown(posix_file_system(), file.path());
    const CacheContent& found = unknown.content();
    const std::size_t end = kTextBegin + found.text.size() +
                            static_cast<std::size_t>(found.samples) * (sizeof(Digest::bytes) + found.sample_bytes);
    HOLDFAST_ASSERT(end == bytes.size());
  });
  fuzz::succeeds([&] {
    // The file exists, so no sample is made.
    const CacheFile cache(posix_file_system(), file.path(), content, nullptr);
    std::vector<std::byte> sample(content.sample_bytes);
    const std::span<std::byte> row = sample;
    // Features and targets lie anywhere.
    const std::size_t cut = sample.size() / 3;
    for (std::size_t i = 0; i < static_cast<std::size_t>(content.samples); ++i) {
      const auto read = [&] { cache.read(static_cast<std::int64_t>(i), row.first(cut), row.subspan(cut)); };
      if (!fuzz::succeeds(read)) continue;
      const auto* const in_file = bytes.data() + first_sample + i * sample.size();
      HOLDFAST_ASSERT(std::ranges::equal(row, std::as_bytes(std::span(in_file, sample.size()))));
      const auto* const in_index = bytes.data() + index_begin + i * sizeof(Digest::bytes);
      HOLDFAST_ASSERT(std::ranges::equal(digest(row).bytes, std::span(in_index, sizeof(Digest::bytes))));
    }
  });
  return 0;
}
