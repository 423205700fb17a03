#pragma once

// Readers for IDX, the format of the MNIST files (yann.lecun.com/exdb/mnist, "The IDX file format"), plain or
// compressed by gzip. The content decides which, not the name. Only unsigned bytes (type 0x08) are read.
//
//   Dataset train = read_idx("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz");
//
// The readers throw Error{not_found}, {refused} or {input_output} if a file cannot be opened or read.
// They throw Error{invalid_file} that names the file and the damage if its content is damaged, too
// short or too long, or larger than the limit; Error{unsupported} for other element types; and
// Error{out_of_memory}. Memory grows with the bytes that arrive; a header that promises too much costs none.

#include <cstdint>
#include <string>

#include "holdfast/core/tensor.h"
#include "holdfast/data/dataset.h"

namespace holdfast {

// How read_idx() makes features of bytes, and what it accepts.
struct IdxOptions {
  float scale = 1.0F / 255.0F;                     // feature = byte * scale
  std::int64_t max_bytes = std::int64_t{2} << 30;  // of the elements of each file, after decompression
};

// What read_idx_tensor() accepts.
struct IdxTensorOptions {
  std::int64_t max_bytes = std::int64_t{2} << 30;  // of the elements, after decompression; each becomes 4 bytes
};

// A data set of images [n, rows, columns] with features [rows, columns, 1], and labels [n] as scalar targets. The
// images stay bytes in memory. Also throws Error{invalid_file} if the two files hold different numbers of samples, and
// Error{invalid_argument} for a scale that is not finite and a limit below 1.
Dataset read_idx(const std::string& images_path, const std::string& labels_path, IdxOptions options = {});

// The content of one file with any number of axes; elements range from 0 to 255.
Tensor read_idx_tensor(const std::string& path, const IdxTensorOptions& options = {});

}  // namespace holdfast
