#include "shard_tensors.h"

#include <ATen/Functions.h>
#include <ATen/ops/from_blob.h>
#include <fmt/format.h>

#include "holdfast/base/error.h"

namespace holdfast::torch {

// LibTorch has no u16 that all its functions compute with. So a u16 is read as i16, and widened below.
static at::ScalarType scalar_type(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return at::kFloat;
    case DType::bf16:
      return at::kBFloat16;
    case DType::i32:
      return at::kInt;
    case DType::i64:
      return at::kLong;
    case DType::u8:
      return at::kByte;
    case DType::boolean:
      return at::kBool;
    case DType::u16:
      return at::kShort;
    default:
      break;
  }
  throw Error(ErrorCode::unsupported, fmt::format("samples of {} cannot become tensors of LibTorch", name(dtype)));
}

// Rows of one array are viewed. If there are several, each has gaps between its samples, and contiguous() copies it.
std::vector<NamedTensor> tensors_of(std::span<const float> rows, const RowLayout& layout, std::int64_t samples,
                                    std::size_t arrays, at::Device place) {
  std::vector<NamedTensor> tensors;
  for (std::size_t i = 0; i < arrays; ++i) {
    const ArraySpec& array = layout.arrays()[i];
    const at::ScalarType type = scalar_type(array.dtype);
    std::vector<std::int64_t> sizes{samples};
    std::vector<std::int64_t> strides;
    std::int64_t stride = 1;
    for (const std::int64_t extent : array.shape.extents()) sizes.push_back(extent);
    for (std::size_t axis = sizes.size() - 1; axis > 0; --axis) {
      strides.insert(strides.begin(), stride);
      stride *= sizes[axis];
    }
    // A row with elements of 8 bytes has an even number of words (RowLayout), so the division below is exact.
    const std::size_t row_bytes = layout.words() * sizeof(float);
    strides.insert(strides.begin(), static_cast<std::int64_t>(row_bytes / size_bytes(array.dtype)));
    // from_blob() takes no constant memory. Batch asks its users not to write to its tensors.
    auto* first = const_cast<float*>(rows.data()) + layout.first_word(i);
    at::Tensor tensor = at::for_blob(first, sizes)
                            .strides(strides)
                            .options(at::TensorOptions().dtype(type).device(place))
                            .target_device(place)
                            .make_tensor()
                            .contiguous();
    if (array.dtype == DType::u16) tensor = tensor.to(at::kInt).bitwise_and(0xffff);
    tensors.push_back({array.name, std::move(tensor)});
  }
  return tensors;
}

RowLayout layout_of(const RowLayout* given, const std::vector<ArraySpec>& specs) {
  return given != nullptr ? *given : RowLayout({specs.front()});
}

}  // namespace holdfast::torch
