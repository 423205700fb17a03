// Frameworks order axes differently, so kernels are transposed in a conversion. One pass without a table of positions
// is fast enough: a conversion waits for the disk.

#include "bytes/transpose.h"

#include <cstring>

#include "holdfast/base/error.h"

namespace holdfast::format {
namespace {

struct Axis {
  std::uint64_t extent;
  std::uint64_t stride;  // in elements of the array that is read
};

// The axes of the result, in its order.
std::vector<Axis> axes_of(std::span<const std::uint64_t> shape, std::span<const std::size_t> axes) {
  std::vector<std::uint64_t> strides(shape.size(), 1);
  for (std::size_t axis = shape.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * shape[axis];
  std::vector<Axis> result;
  for (const std::size_t axis : axes) result.push_back({shape[axis], strides[axis]});
  return result;
}

// The width is a template argument, so that the compiler copies an element with one load and one store.
template <std::size_t kBytes>
void copy(const std::byte* in, std::span<const Axis> axes, std::span<std::byte> out) {
  std::vector<std::uint64_t> index(axes.size(), 0);
  std::uint64_t from = 0;
  for (std::size_t to = 0; to < out.size(); to += kBytes) {
    std::memcpy(out.data() + to, in + from * kBytes, kBytes);
    // An odometer: the last axis of the result runs fastest, and `from` follows with that axis's stride in the input.
    for (std::size_t axis = axes.size(); axis-- > 0;) {
      from += axes[axis].stride;
      if (++index[axis] < axes[axis].extent) break;
      from -= axes[axis].stride * axes[axis].extent;
      index[axis] = 0;
    }
  }
}

}  // namespace

std::vector<std::byte> transpose(std::span<const std::byte> bytes, std::size_t element_bytes,
                                 std::span<const std::uint64_t> shape, std::span<const std::size_t> axes) {
  HOLDFAST_ASSERT(shape.size() == axes.size());
  std::vector<std::byte> out(bytes.size());
  const std::vector<Axis> places = axes_of(shape, axes);
  switch (element_bytes) {
    case 1:
      copy<1>(bytes.data(), places, out);
      break;
    case 2:
      copy<2>(bytes.data(), places, out);
      break;
    case 4:
      copy<4>(bytes.data(), places, out);
      break;
    default:
      HOLDFAST_ASSERT(element_bytes == 8);
      copy<8>(bytes.data(), places, out);
  }
  return out;
}

}  // namespace holdfast::format
