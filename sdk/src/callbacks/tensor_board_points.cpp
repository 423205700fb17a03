// Values as TensorBoard's older messages have them (Summary.Value: simple_value, image, histo), which it converts when
// it reads them. Only texts need a tensor and a plugin's name. See docs/decisions/records.md.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "callbacks/event_file.h"
#include "callbacks/png_writer.h"
#include "callbacks/protobuf_fields.h"
#include "holdfast/base/error.h"
#include "holdfast/observe/tensor_board.h"

namespace holdfast {
namespace {

// As many as tf.summary.histogram() makes by default.
constexpr std::size_t kIntervals = 30;

// Covers the values that are finite.
struct ValueRange {
  double lowest = 0;
  double highest = 0;
  double count = 0;
  double sum = 0;
  double sum_of_squares = 0;
};

ValueRange range_of(std::span<const float> values) {
  ValueRange range;
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    const double wide = value;
    range.lowest = range.count == 0 ? wide : std::min(range.lowest, wide);
    range.highest = range.count == 0 ? wide : std::max(range.highest, wide);
    range.count += 1;
    range.sum += wide;
    range.sum_of_squares += wide * wide;
  }
  return range;
}

// How many values are in each of the intervals between `lowest` and `highest`.
std::vector<double> counts_in(std::span<const float> values, const ValueRange& range, std::size_t intervals) {
  std::vector<double> counts(intervals);
  const double width = (range.highest - range.lowest) / static_cast<double>(intervals);
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    const double place = width > 0 ? (static_cast<double>(value) - range.lowest) / width : 0;
    // The highest value belongs to the last interval.
    counts[std::min(static_cast<std::size_t>(place), intervals - 1)] += 1;
  }
  return counts;
}

std::uint8_t pixel_of(float value) {
  if (!(value > 0)) return 0;
  return static_cast<std::uint8_t>(std::lround(std::min(value, 1.0F) * 255.0F));
}

std::vector<std::uint8_t> pixels_of(const Tensor& tensor, const std::string& tag) {
  const std::vector<std::int64_t>& extents = tensor.shape().extents();
  const bool is_picture = extents.size() == 3 && (extents[2] == 1 || extents[2] == 3 || extents[2] == 4) &&
                          (tensor.dtype() == DType::f32 || tensor.dtype() == DType::u8);
  if (!is_picture) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("TensorBoard cannot show \"{}\", {} of shape {}, as a picture; give it [height, width, "
                            "channels] of f32 or u8 with 1, 3 or 4 channels",
                            tag, holdfast::name(tensor.dtype()), tensor.shape().to_string()));
  }
  std::vector<std::uint8_t> pixels;
  if (tensor.dtype() == DType::u8) {
    const std::span<const std::uint8_t> values = tensor.elements<std::uint8_t>();
    pixels.assign(values.begin(), values.end());
    return pixels;
  }
  for (const float value : tensor.values()) pixels.push_back(pixel_of(value));
  return pixels;
}

}  // namespace

void TensorBoardPoints::scalar(const std::string& tag, double value) {
  summary_ += summary_value(tag, protobuf::float_field(2, static_cast<float>(value)));
}

// Fields of HistogramProto: min, max, num, sum, sum_squares, bucket_limit, bucket. Values that are not finite have no
// interval and are left out of all of them.
void TensorBoardPoints::histogram(const std::string& tag, std::span<const float> values) {
  const ValueRange range = range_of(values);
  // Equal values are one interval without width.
  const std::size_t intervals = range.highest > range.lowest ? kIntervals : 1;
  std::vector<double> limits;
  for (std::size_t i = 1; i <= intervals; ++i) {
    limits.push_back(range.lowest +
                     (range.highest - range.lowest) * static_cast<double>(i) / static_cast<double>(intervals));
  }
  const std::string message = protobuf::double_field(1, range.lowest) + protobuf::double_field(2, range.highest) +
                              protobuf::double_field(3, range.count) + protobuf::double_field(4, range.sum) +
                              protobuf::double_field(5, range.sum_of_squares) + protobuf::doubles_field(6, limits) +
                              protobuf::doubles_field(7, counts_in(values, range, intervals));
  summary_ += summary_value(tag, protobuf::text_field(5, message));
}

// Fields of Summary.Image: height, width, colorspace, encoded_image_string. The number of a colorspace is that of its
// channels.
void TensorBoardPoints::image(const std::string& tag, const Tensor& pixels) {
  const std::vector<std::uint8_t> bytes = pixels_of(pixels, tag);
  const std::vector<std::int64_t>& extents = pixels.shape().extents();
  const std::string message = protobuf::number_field(1, static_cast<std::uint64_t>(extents[0])) +
                              protobuf::number_field(2, static_cast<std::uint64_t>(extents[1])) +
                              protobuf::number_field(3, static_cast<std::uint64_t>(extents[2])) +
                              protobuf::text_field(4, png_of(bytes, extents[0], extents[1], extents[2]));
  summary_ += summary_value(tag, protobuf::text_field(4, message));
}

// A tensor of one string, marked for the plugin of texts.
void TensorBoardPoints::text(const std::string& tag, const std::string& text) {
  constexpr std::uint64_t kString = 7;           // DataType DT_STRING
  constexpr std::uint64_t kTensorOfAnyKind = 2;  // DataClass DATA_CLASS_TENSOR
  const std::string dimension = protobuf::text_field(2, protobuf::number_field(1, 1));
  const std::string tensor =
      protobuf::number_field(1, kString) + protobuf::text_field(2, dimension) + protobuf::text_field(8, text);
  const std::string metadata =
      protobuf::text_field(1, protobuf::text_field(1, "text")) + protobuf::number_field(4, kTensorOfAnyKind);
  summary_ += summary_value(tag, protobuf::text_field(9, metadata) + protobuf::text_field(8, tensor));
}

}  // namespace holdfast
