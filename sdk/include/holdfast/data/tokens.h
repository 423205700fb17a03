#pragma once

// Token ids as data for language models: a sample is `length` ids that follow one another, and its targets are the ids
// that follow each of them.
//
//   const auto [training, validation] = open_raw_tokens("corpus.bin", {.dtype = DType::u16}).split(0.01);
//   const Dataset data = training.windows(1024, {.vocabulary = 50257});   // inputs i32 [1024], targets f32 [1024]
//   trainer.fit(data.shuffle().batch(32), {.validation = validation.windows(1024, {.vocabulary = 50257}).batch(32)});
//
// Ids are in memory, or stay in a file that may be larger than memory: samples are read as batches need them. For text
// and a vocabulary of its characters, see holdfast/data/text.h.
//
// Tokens is a value: cheap to copy, and safe to use from several threads.

#include <cstdint>
#include <memory>
#include <string>

#include "holdfast/base/dtype.h"
#include "holdfast/core/tensor.h"
#include "holdfast/data/array_files.h"
#include "holdfast/data/dataset.h"

namespace holdfast {

class TokenArray;
struct RawTokens;
struct TokensSplit;

// How Tokens::windows() cuts ids into samples.
struct TokenWindows {
  // Each id is below it, for Embedding{vocabulary, n} and the last layer. It must be given, and is at most 2^24, which
  // targets of f32 can count.
  std::int64_t vocabulary = 0;
  std::int64_t stride = 0;  // ids from the beginning of a sample to that of the next one; 0: the length
};

class Tokens {
 public:
  // Ids in memory, of one axis: u8, u16 or i32. Throws Error{invalid_argument} for another shape or type.
  explicit Tokens(Tensor ids);

  std::int64_t size() const { return size_; }  // in ids

  // Keeps the end for validation: a fraction of the ids, rounded down, and at least one in each part. Windows of the
  // two parts never overlap. Throws Error{invalid_argument} unless 0 < fraction < 1, and for less than two ids.
  TokensSplit split(double for_validation) const;

  // Sample i has the ids [i * stride, i * stride + length) as its input "ids", i32 [length], and as its target "next",
  // f32 [length] for the sparse losses, the ids one position later. What is left at the end is in no sample.
  //
  // Reads all ids once: each must be below the vocabulary, and the description has their digest. It is the same for
  // equal ids of any type, in memory or in a file, so that a run may go on with another form of them.
  //
  // Throws Error{invalid_argument} for options that make no sense, and for less than length + 1 ids. An id that is not
  // in [0, vocabulary) is Error{invalid_file}, or Error{invalid_argument} in memory, that names its position. So is a
  // file of u16 whose every second id is 0: it holds integers of 32 bits. Fewer than 64 ids may be so by chance.
  Dataset windows(std::int64_t length, const TokenWindows& options) const;

 private:
  friend Tokens open_raw_tokens(const std::string& path, const RawTokens& options);
  friend Tokens open_tokens(const FileArray& array);
  Tokens(std::shared_ptr<const TokenArray> ids, std::int64_t begin, std::int64_t size)
      : ids_(std::move(ids)), begin_(begin), size_(size) {}

  std::shared_ptr<const TokenArray> ids_;
  std::int64_t begin_;  // the first id of this part
  std::int64_t size_;
};

// The two parts that Tokens::split() makes.
struct TokensSplit {
  Tokens training;    // from the first id on
  Tokens validation;  // the rest
};

// What open_raw_tokens() must know about a file.
struct RawTokens {
  DType dtype = DType::u16;       // of its ids: u16 or i32, little-endian
  std::int64_t header_bytes = 0;  // before the first id: 1024 for the files of llm.c
};

// A file of nothing but ids, as numpy.ndarray.tofile() and the scripts of nanoGPT write it. It must not change as long
// as the data is in use; one that becomes shorter, or gets ids beyond the vocabulary, is Error{invalid_file} when the
// sample is read.
//
// Throws Error{not_found, refused, input_output} from the file system, Error{invalid_argument} for another type or a
// header below 0, and Error{invalid_file} for a file that is shorter than its header, ends within an id, or is one of
// NumPy.
Tokens open_raw_tokens(const std::string& path, const RawTokens& options = {});

// An array of one axis of a .npy, .npz or safetensors file, of any type whose values are whole numbers of 32 bits.
// FileArray::array says which one; FileArray::name and dtype are not looked at. Throws as from_files() does, and
// Error{invalid_argument} for other axes.
Tokens open_tokens(const FileArray& array);

}  // namespace holdfast
