#pragma once

// Token ids by position, wherever they are.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "data/files/file_array.h"
#include "holdfast/base/error.h"
#include "holdfast/core/tensor.h"

namespace holdfast {

// Immutable, and safe to use from several threads.
class TokenArray {
 public:
  // Throws as Tokens(ids) does.
  explicit TokenArray(Tensor ids);
  // Throws as open_tokens() does, unless the array has one axis.
  explicit TokenArray(OpenFileArray ids);

  // For messages: the path and the array, or "the tensor of ids".
  const std::string& label() const { return label_; }
  std::int64_t size() const { return size_; }
  bool is_in_file() const { return file_.has_value(); }
  // The type in which ids are stored.
  DType stored() const { return stored_; }

  // Writes the ids [begin, begin + ids.size()), which must exist. Throws as OpenFileArray::read() does.
  void read(std::int64_t begin, std::span<std::int32_t> ids) const;
  // A hint that these ids will be read soon.
  void expect(std::int64_t begin, std::int64_t count) const;
  // An error about the content: invalid_file, or invalid_argument in memory.
  Error error(const std::string& sentence) const;

 private:
  std::string label_;
  std::int64_t size_;
  DType stored_;
  std::optional<Tensor> tensor_;
  std::optional<OpenFileArray> file_;
};

}  // namespace holdfast
