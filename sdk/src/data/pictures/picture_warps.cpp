// Each change only says how a point of the result leads to one of the picture, as numbers of one projective map. So all
// of them share one loop over pixels (picture_motion.h), which interpolates once. docs/decisions/pictures.md

#include "holdfast/data/picture_warps.h"

#include <fmt/format.h>

#include <functional>
#include <utility>
#include <vector>

#include "data/pictures/picture_arrays.h"
#include "data/pictures/picture_motion.h"
#include "data/pictures/pixel_change.h"

namespace holdfast {
namespace {

// The change of a picture by what `drawn` says of its height and width.
using DrawnWarp = std::function<PictureWarp(std::int64_t height, std::int64_t width, Random& random)>;

void warp_row(const DrawnWarp& drawn, PictureEdge edge, const ArrayRow& from, const ArrayRow& into, Random& random) {
  const ArraySpec& array = from.layout().arrays()[0];
  const Shape& shape = array.shape;
  // Before pixels are looked at, so floats and bytes draw the same.
  const PictureWarp warp = drawn(shape[0], shape[1], random);
  if (array.dtype == DType::f32) {
    return warp_picture(from.elements<float>(0), shape[0], shape[1], shape[2], warp, edge, into.elements<float>(0));
  }
  // Bytes are interpolated as floats and rounded once, at the end.
  const std::vector<float> pixels = floats_of(from);
  std::vector<float> result(pixels.size());
  warp_picture(pixels, shape[0], shape[1], shape[2], warp, edge, result);
  write_floats(result, into);
}

PictureChange warp_change(const char* function, std::string name, PictureEdge edge, DrawnWarp drawn) {
  const auto output = [function](const ArraySpec& input) {
    check_picture(function, input);
    return input;
  };
  const auto apply = [edge, drawn = std::move(drawn)](const ArrayRow& from, const ArrayRow& into, Random& random) {
    warp_row(drawn, edge, from, into, random);
  };
  return {.name = std::move(name), .output = output, .apply = apply, .draws = true};
}

}  // namespace

PictureChange random_shear(const ShearOptions& options) {
  check_range("random_shear", "x", options.x, 0, 1);
  check_range("random_shear", "y", options.y, 0, 1);
  const auto drawn = [options](std::int64_t /*height*/, std::int64_t /*width*/, Random& random) {
    // One sign for both directions. Three draws are made for each sample, also where a range is one number.
    const float sign = random.uniform() < 0.5F ? -1.0F : 1.0F;
    PictureWarp warp;
    warp.x_of_y = sign * drawn_from(options.x, random);
    warp.y_of_x = sign * drawn_from(options.y, random);
    return warp;
  };
  return warp_change("random_shear",
                     fmt::format("random_shear x {}, y {}, edge {}", text_of(options.x), text_of(options.y),
                                 static_cast<int>(options.edge)),
                     options.edge, drawn);
}

PictureChange random_perspective(const PerspectiveOptions& options) {
  check_number("random_perspective", "probability", options.probability, 0, 1);
  check_number("random_perspective", "scale", options.scale, 0, 1);
  const auto drawn = [options](std::int64_t height, std::int64_t width, Random& random) -> PictureWarp {
    // All draws are made in any case, so how many there are does not depend on the first.
    const bool changes = random.uniform() < options.probability;
    PictureCorners corners = corners_of(height, width);
    for (PicturePoint& corner : corners) {
      for (double* const coordinate : {&corner.x, &corner.y}) {
        *coordinate *= 1 + static_cast<double>(options.scale) * (static_cast<double>(random.uniform()) - 0.5);
      }
    }
    return changes ? warp_between(corners_of(height, width), corners) : PictureWarp{};
  };
  return warp_change("random_perspective",
                     fmt::format("random_perspective probability {}, scale {}", options.probability, options.scale),
                     PictureEdge::constant, drawn);
}

}  // namespace holdfast
