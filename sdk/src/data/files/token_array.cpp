#include "data/files/token_array.h"

#include <fmt/format.h>

#include "data/files/array_conversion.h"

namespace holdfast {

static void check_axes_of_ids(const Shape& shape, const std::string& label) {
  if (shape.rank() == 1) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} has the shape {}; token ids are one long array of one axis, from which windows() cuts "
                          "samples",
                          label, shape.to_string()));
}

TokenArray::TokenArray(Tensor ids)
    : label_("the tensor of ids"), size_(ids.shape().element_count()), stored_(ids.dtype()), tensor_(std::move(ids)) {
  check_axes_of_ids(tensor_->shape(), label_);
  const bool is_integer = stored_ == DType::u8 || stored_ == DType::u16 || stored_ == DType::i32;
  if (is_integer) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} is of {}; token ids are of u8, u16 or i32", label_, name(stored_)));
}

TokenArray::TokenArray(OpenFileArray ids)
    : label_(ids.label()), size_(0), stored_(ids.stored()), file_(std::move(ids)) {
  check_axes_of_ids(file_->shape(), label_);
  size_ = file_->shape()[0];
}

void TokenArray::read(std::int64_t begin, std::span<std::int32_t> ids) const {
  if (file_) return file_->read(begin, static_cast<std::int64_t>(ids.size()), std::as_writable_bytes(ids));
  const std::span<const std::byte> bytes = tensor_->bytes();
  const auto first = static_cast<std::size_t>(begin);
  convert_elements(bytes.subspan(first * size_bytes(stored_), ids.size() * size_bytes(stored_)), stored_,
                   std::as_writable_bytes(ids), DType::i32, first, label_);
}

void TokenArray::expect(std::int64_t begin, std::int64_t count) const {
  if (file_) file_->expect(begin, count);
}

Error TokenArray::error(const std::string& sentence) const {
  return Error(is_in_file() ? ErrorCode::invalid_file : ErrorCode::invalid_argument, sentence);
}

}  // namespace holdfast
