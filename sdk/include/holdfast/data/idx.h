#pragma once

// Readers for IDX, the format of the MNIST files (yann.lecun.com/exdb/mnist, "The IDX file format"), plain or
// compressed by gzip; the content tells which, not the name. Only unsigned bytes (type 0x08) are read.
//
// All of them throw Error{not_found, refused or input_output} when the file cannot be opened or read,
// Error{invalid_file} naming the path and what is wrong when its content is damaged, short, or longer than it says, and
// Error{unsupported} for other element types. Memory is taken as bytes arrive, never on the word of a header.

#include <string>

#include "holdfast/core/tensor.h"
#include "holdfast/data/dataset.h"

namespace holdfast {

struct IdxOptions {
  float scale = 1.0F / 255.0F;  // a feature is its byte times this
};

// Images [n, rows, columns] become features [rows, columns, 1], labels [n] scalar targets. The images stay bytes in
// memory. Throws Error{invalid_file} as well when the two files do not hold the same number of samples,
// Error{invalid_argument} for a scale that is not finite.
Dataset read_idx(const std::string& images_path, const std::string& labels_path, IdxOptions options = {});

// Any number of axes; elements from 0 to 255.
Tensor read_idx_tensor(const std::string& path);

}  // namespace holdfast
