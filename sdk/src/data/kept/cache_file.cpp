// The index is written last, when the digests of all samples are known, but lies in front of them: a reader checks
// sizes and index at once, and each sample when it is needed. See docs/decisions/caches.md.

#include "data/kept/cache_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "core/first_failure.h"
#include "core/worker_pool.h"
#include "holdfast/base/error.h"
#include "holdfast/base/shown_text.h"
#include "holdfast/base/whole_file.h"

namespace holdfast {
namespace {

// Numbers, digests and words of samples go to the file as they are in memory.
static_assert(std::endian::native == std::endian::little);

constexpr std::string_view kCacheMagic = "HFCACHE1";
constexpr std::size_t kCacheDigestEnd = kCacheMagic.size() + sizeof(Digest::bytes);
constexpr std::size_t kCacheHeadBytes = kCacheDigestEnd + 3 * sizeof(std::uint64_t);
// A head that claims more is damaged. It bounds the memory that a broken file can ask for.
constexpr std::uint64_t kMostCacheTextBytes = 64U << 20;
// All samples of a file have no more bytes than this, which is far from where sums of 64 bits wrap.
constexpr std::uint64_t kMostSampleBytes = std::uint64_t{1} << 62;
// Runs of about this size are read at once. The kernel reads ahead in larger steps then, and asks the disk for more
// with each. A run of samples of 150 KB each was read at 0.6 of the speed of a plain read.
constexpr std::size_t kRunBytes = std::size_t{1} << 20;
// Below it, a hint to the kernel takes longer than it saves.
constexpr std::uint64_t kLeastExpectedBytes = 16U << 10;

// The numbers of the head, in the order of the file.
using HeadNumbers = std::array<std::uint64_t, 3>;

HeadNumbers numbers_of(const CacheContent& content) {
  return {content.text.size(), static_cast<std::uint64_t>(content.samples), content.sample_bytes};
}

// What the digest of the head covers.
std::vector<std::byte> head_of(const CacheContent& content, std::span<const Digest> index) {
  const HeadNumbers numbers = numbers_of(content);
  std::vector<std::byte> bytes(sizeof(numbers) + content.text.size() + index.size_bytes());
  std::byte* end = bytes.data();
  const auto append = [&](std::span<const std::byte> piece) { end = std::ranges::copy(piece, end).out; };
  append(std::as_bytes(std::span(numbers)));
  append(std::as_bytes(std::span(content.text)));
  append(std::as_bytes(index));
  return bytes;
}

// Samples that are in memory at once while the file is written: enough that threads seldom wait for each other.
std::int64_t samples_together(const CacheContent& content, int threads) {
  constexpr std::size_t kBytes = std::size_t{8} << 20;
  // Many small samples need no more than this for the threads to have work.
  constexpr std::int64_t kSamples = 4096;
  const auto fitting = static_cast<std::int64_t>(kBytes / std::max<std::size_t>(1, content.sample_bytes));
  return std::clamp<std::int64_t>(fitting, threads, std::max<std::int64_t>(threads, kSamples));
}

std::uint64_t first_sample_of(const CacheContent& content) {
  return kCacheHeadBytes + content.text.size() + static_cast<std::uint64_t>(content.samples) * sizeof(Digest::bytes);
}

void write_samples(File& file, const CacheContent& content, const CacheFile::MakeSample& make, int threads) {
  WorkerPool pool(threads);
  // Groups follow each other: all threads wait for the last sample of one, which is written as one run of bytes. So the
  // file grows in order, and no byte depends on the threads.
  const std::int64_t together = std::min(content.samples, samples_together(content, threads));
  std::vector<std::byte> samples(static_cast<std::size_t>(together) * content.sample_bytes);
  std::vector<Digest> index(static_cast<std::size_t>(content.samples));
  for (std::int64_t begin = 0; begin < content.samples; begin += together) {
    const std::int64_t count = std::min(together, content.samples - begin);
    FirstFailure failure;
    pool.run(static_cast<int>(count), [&](int, int task) {
      const auto i = static_cast<std::size_t>(task);
      if (failure.is_before(i)) return;
      try {
        const std::span<std::byte> sample = std::span(samples).subspan(i * content.sample_bytes, content.sample_bytes);
        make(begin + task, sample);
        index[static_cast<std::size_t>(begin) + i] = digest(sample);
      } catch (...) {
        failure.note(i);
      }
    });
    failure.rethrow_if_there();
    file.write_at(first_sample_of(content) + static_cast<std::uint64_t>(begin) * content.sample_bytes,
                  std::span(samples).first(static_cast<std::size_t>(count) * content.sample_bytes));
  }
  // Last, so that a file without a magic is one that was not finished. Its name does
  // not exist before it is whole either.
  const std::vector<std::byte> head = head_of(content, index);
  const Digest head_digest = digest(head);
  file.write_at(0, std::as_bytes(std::span(kCacheMagic)));
  file.write_at(kCacheMagic.size(), std::as_bytes(std::span(head_digest.bytes)));
  file.write_at(kCacheDigestEnd, head);
}

}  // namespace

CacheFile::CacheFile(FileSystem& files, const std::string& path, const CacheContent& content, const MakeSample& make,
                     int threads)
    : path_(path) {
  // Two processes may both find it missing. Each then writes a temporary file of its
  // own and renames it, with equal bytes.
  if (!files.exists(path)) {
    write_whole_file(files, path, [&](File& file) { write_samples(file, content, make, threads); });
  }
  open(files, &content);
}

CacheFile::CacheFile(FileSystem& files, const std::string& path) : path_(path) {
  open(files, nullptr);
}

void CacheFile::open(FileSystem& files, const CacheContent* wanted) {
  file_ = files.open_for_reading(path_);
  const std::uint64_t size = file_->size_bytes();
  // From here on nothing in the file is believed: each number is checked before it decides how much memory is taken.
  std::array<std::byte, kCacheHeadBytes> head{};
  const bool is_cache =
      file_->read_at(0, head) == head.size() && std::memcmp(head.data(), kCacheMagic.data(), kCacheMagic.size()) == 0;
  if (!is_cache) refuse("it is not a cache of samples; give another path");
  HeadNumbers numbers{};
  std::memcpy(numbers.data(), head.data() + kCacheDigestEnd, sizeof(numbers));
  if (numbers[0] > kMostCacheTextBytes || numbers[0] > size) refuse("its head is damaged; remove it");
  std::string text(numbers[0], '\0');
  if (file_->read_at(kCacheHeadBytes, std::as_writable_bytes(std::span(text))) != text.size())
    refuse("it is cut off; remove it");
  // Sizes are compared before memory for the index is taken.
  if (wanted != nullptr && (numbers != numbers_of(*wanted) || text != wanted->text)) {
    throw Error(ErrorCode::incompatible,
                fmt::format("the cache {} was made of other data ({}) than it is asked for ({}); remove it, or give "
                            "another path",
                            quoted_path(path_), shown_text(text), shown_text(wanted->text)));
  }
  // The file has room for this index, so its size cannot wrap. That of all samples could.
  if (numbers[1] > size / sizeof(Digest::bytes) ||
      numbers[2] > kMostSampleBytes / std::max<std::uint64_t>(1, numbers[1])) {
    refuse("its head is damaged; remove it");
  }
  content_ = {.text = text,
              .samples = static_cast<std::int64_t>(numbers[1]),
              .sample_bytes = static_cast<std::size_t>(numbers[2])};
  first_sample_ = first_sample_of(content_);
  if (size != first_sample_ + numbers[1] * numbers[2]) {
    refuse(fmt::format("it has {} bytes, not {}; remove it", size, first_sample_ + numbers[1] * numbers[2]));
  }
  index_.resize(numbers[1]);
  const std::span<std::byte> index = std::as_writable_bytes(std::span(index_));
  const bool is_whole = file_->read_at(kCacheHeadBytes + text.size(), index) == index.size();
  const Digest found = digest(head_of(content_, index_));
  if (!is_whole || std::memcmp(head.data() + kCacheMagic.size(), found.bytes.data(), found.bytes.size()) != 0) {
    refuse("the digest of its head is wrong; remove it");
  }
}

// The disk then reads while other samples are checked. For small samples the call would take longer than it saves.
void CacheFile::expect(std::int64_t sample) const {
  if (content_.sample_bytes < kLeastExpectedBytes) return;
  file_->start_reading(begin_of(sample), content_.sample_bytes);
}

void CacheFile::read(std::int64_t sample, std::span<std::byte> first, std::span<std::byte> rest) const {
  // A sample of another size has another digest, too.
  if (first.size() + rest.size() != content_.sample_bytes) refuse_sample(sample);
  read_samples(sample, 1, first, rest);
}

void CacheFile::read_run(std::int64_t first, std::span<std::byte> firsts, std::span<std::byte> rests) const {
  HOLDFAST_ASSERT(content_.sample_bytes > 0 && (firsts.size() + rests.size()) % content_.sample_bytes == 0);
  // Runs follow each other. The hint is for the file as a whole, and costs nothing next to a run.
  file_->expect_reads_in_order();
  read_samples(first, (firsts.size() + rests.size()) / content_.sample_bytes, firsts, rests);
}

// In the file, the two parts of a sample lie one after the other. So a run is read into many places at once.
void CacheFile::read_samples(std::int64_t first, std::size_t count, std::span<std::byte> firsts,
                             std::span<std::byte> rests) const {
  if (count == 0) return;
  const std::size_t first_bytes = firsts.size() / count;
  const std::size_t rest_bytes = rests.size() / count;
  std::vector<std::span<std::byte>> places;
  for (std::size_t i = 0; i < count; ++i) {
    places.push_back(firsts.subspan(i * first_bytes, first_bytes));
    places.push_back(rests.subspan(i * rest_bytes, rest_bytes));
  }
  // Fewer at the end of a file that someone has cut off meanwhile.
  const std::size_t got = file_->scatter_at(begin_of(first), places);
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t sample = first + static_cast<std::int64_t>(i);
    // The digest covers the sample as one run of bytes, however it is cut into features and targets.
    DigestBuilder found;
    found.update(places[2 * i]);
    found.update(places[2 * i + 1]);
    const bool is_whole = got >= (i + 1) * content_.sample_bytes;
    if (!is_whole || found.finish() != index_[static_cast<std::size_t>(sample)]) refuse_sample(sample);
  }
}

std::int64_t CacheFile::samples_of_a_run() const {
  return static_cast<std::int64_t>(
      std::max<std::size_t>(1, kRunBytes / std::max<std::size_t>(1, content_.sample_bytes)));
}

void CacheFile::refuse_sample(std::int64_t sample) const {
  refuse(fmt::format("the digest of sample {} is wrong; remove it", sample));
}

void CacheFile::refuse(const std::string& reason) const {
  throw Error(ErrorCode::invalid_file, fmt::format("cannot read the cache {}: {}", quoted_path(path_), reason));
}

}  // namespace holdfast
