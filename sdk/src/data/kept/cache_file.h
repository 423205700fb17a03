#pragma once

// A file of samples that are all equally long, which is whole or absent. Numbers are little-endian.
//
//   8 bytes   "HFCACHE1"
//   16 bytes  digest of everything from here to the first sample
//   8 bytes   bytes of the text
//   8 bytes   number of samples
//   8 bytes   bytes of a sample
//   text      JSON: what the samples were made of
//   index     digest of each sample, 16 bytes
//   samples

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "holdfast/base/digest.h"
#include "holdfast/base/file_system.h"

namespace holdfast {

struct CacheContent {
  std::string text;
  std::int64_t samples = 0;
  std::size_t sample_bytes = 0;
};

class CacheFile {
 public:
  using MakeSample = std::function<void(std::int64_t sample, std::span<std::byte> bytes)>;

  // Opens the file and checks everything before its samples. If it does not exist, it is written first: a temporary
  // file that is renamed when it is whole. So many threads call `make`; no byte depends on them. Throws
  // Error{incompatible} for a file with another text or other sizes, and Error{invalid_file} for one that is damaged or
  // no cache. The exception of the first sample in order passes through and leaves no file.
  CacheFile(FileSystem& files, const std::string& path, const CacheContent& content, const MakeSample& make,
            int threads = 1);

  // Opens a file whose number of samples and text are not known before. Throws Error{invalid_file} as above.
  CacheFile(FileSystem& files, const std::string& path);

  // The text and the sizes that the file was written with.
  const CacheContent& content() const { return content_; }

  // A hint that this sample will be read soon. Any thread.
  void expect(std::int64_t sample) const;
  // Both parts together are the sample. Any thread, several at once. Throws Error{invalid_file} if its digest is wrong.
  void read(std::int64_t sample, std::span<std::byte> first, std::span<std::byte> rest) const;
  // Reads as many samples from `first` on as both parts have room for, as read() does, with one call of the system. The
  // first parts of all samples lie one after another, and so do the others. Asserts that samples have bytes.
  void read_run(std::int64_t first, std::span<std::byte> firsts, std::span<std::byte> rests) const;
  // How many samples read_run() should read, so that the disk has enough to do: one or more.
  std::int64_t samples_of_a_run() const;

 private:
  std::uint64_t begin_of(std::int64_t sample) const {
    return first_sample_ + static_cast<std::uint64_t>(sample) * content_.sample_bytes;
  }
  void read_samples(std::int64_t first, std::size_t count, std::span<std::byte> firsts,
                    std::span<std::byte> rests) const;
  [[noreturn]] void refuse_sample(std::int64_t sample) const;
  // Null: any content.
  void open(FileSystem& files, const CacheContent* wanted);
  [[noreturn]] void refuse(const std::string& reason) const;

  std::string path_;
  CacheContent content_;
  std::unique_ptr<File> file_;
  std::vector<Digest> index_;
  std::uint64_t first_sample_ = 0;  // where it begins
};

}  // namespace holdfast
