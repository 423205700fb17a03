// A picture is read and decoded each time its sample is loaded, so a data set of any size takes the memory of its list
// of files. Prefetching threads do that work. See docs/decisions/pictures.md.

#include "holdfast/data/pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "data/pictures/picture.h"
#include "data/pictures/picture_folder.h"
#include "data/pictures/resize.h"
#include "data/stages/stage.h"
#include "holdfast/base/error.h"
#include "holdfast/base/shown_text.h"

namespace holdfast {
namespace {

// A sample of one picture must fit into memory many times.
constexpr std::int64_t kMostSamplePixels = std::int64_t{1} << 28;

Error refused_pictures(const std::string& reason) {
  return Error(ErrorCode::invalid_argument, fmt::format("read_pictures(): {}", reason));
}

void check_options(const PictureOptions& options) {
  if (options.height < 1 || options.width < 1 || options.height > kMostSamplePixels / options.width) {
    throw refused_pictures(
        fmt::format("samples need a height and a width, such as {{.height = 64, .width = 64}}, and not {} x {}",
                    options.height, options.width));
  }
  if (options.channels != 1 && options.channels != 3 && options.channels != 4) {
    throw refused_pictures(fmt::format("channels are 1 (gray), 3 (RGB) or 4 (RGBA), not {}", options.channels));
  }
  if (options.dtype != DType::f32 && options.dtype != DType::u8) {
    throw refused_pictures(fmt::format("samples are of f32 or u8, not {}", name(options.dtype)));
  }
  if (!std::isfinite(options.scale)) {
    throw refused_pictures(fmt::format("the scale of pixels is a finite number, not {}", options.scale));
  }
  for (const std::int64_t limit : {options.max_file_bytes, options.max_pixels, options.max_files}) {
    if (limit < 1) throw refused_pictures(fmt::format("limits are 1 or more, not {}", limit));
  }
}

PictureView<std::uint8_t> whole(const Picture& picture) {
  return {.pixels = picture.pixels.data(),
          .height = picture.height,
          .width = picture.width,
          .channels = picture.channels,
          .row_pixels = picture.width * picture.channels};
}

// The middle part that has the ratio of height and width.
PictureView<std::uint8_t> cropped(const Picture& picture, std::int64_t height, std::int64_t width) {
  PictureView<std::uint8_t> view = whole(picture);
  // As smart_resize() of Keras; sides are below 2^28, so products fit.
  // One of the two keeps its full side, and the other is cut: integers are rounded
  // down, so neither exceeds the picture.
  view.height = std::clamp<std::int64_t>(picture.width * height / width, 1, picture.height);
  view.width = std::clamp<std::int64_t>(picture.height * width / height, 1, picture.width);
  view.pixels += (picture.height - view.height) / 2 * view.row_pixels;
  view.pixels += (picture.width - view.width) / 2 * view.channels;
  return view;
}

// The largest picture of the same ratio that fits, and zeros around it.
void resize_and_pad(const Picture& picture, const PictureOptions& options, std::span<float> into) {
  const double ratio = std::min(static_cast<double>(options.height) / static_cast<double>(picture.height),
                                static_cast<double>(options.width) / static_cast<double>(picture.width));
  const auto fitting = [&](std::int64_t side, std::int64_t most) {
    return std::clamp<std::int64_t>(std::llround(static_cast<double>(side) * ratio), 1, most);
  };
  const std::int64_t height = fitting(picture.height, options.height);
  const std::int64_t width = fitting(picture.width, options.width);
  // Black is 0 in either type, so what is around the picture needs no scale.
  std::vector<float> inner(static_cast<std::size_t>(height * width * picture.channels));
  resize_picture(whole(picture), height, width, options.interpolation, inner);
  std::ranges::fill(into, 0.0F);
  const std::int64_t row = width * picture.channels;
  float* output = into.data();
  output += ((options.height - height) / 2 * options.width + (options.width - width) / 2) * picture.channels;
  for (std::int64_t y = 0; y < height; ++y) {
    std::copy_n(inner.begin() + y * row, row, output + y * options.width * picture.channels);
  }
}

// Pixels of 0 to 255, [height, width, channels].
void fit_picture(const Picture& picture, const PictureOptions& options, std::span<float> into) {
  if (options.fit == PictureFit::pad) return resize_and_pad(picture, options, into);
  const PictureView<std::uint8_t> part =
      options.fit == PictureFit::crop ? cropped(picture, options.height, options.width) : whole(picture);
  resize_picture(part, options.height, options.width, options.interpolation, into);
}

// Writes one sample.
// Runs on any loading thread, and holds a whole decoded picture meanwhile. What it throws names the file.
void load_picture(const PictureFile& file, const PictureOptions& options, const ArrayRow& into) {
  const Picture picture = decode_picture(read_listed(file, options.max_file_bytes),
                                         {.channels = options.channels, .max_pixels = options.max_pixels}, file.path);
  if (options.dtype == DType::f32) {
    const std::span<float> features = into.elements<float>(0);
    fit_picture(picture, options, features);
    // After resizing, as a product of each result: so `scale` has no influence on which pixels are mixed.
    for (float& feature : features) feature *= options.scale;
    return;
  }
  const std::span<std::uint8_t> features = into.elements<std::uint8_t>(0);
  std::vector<float> pixels(features.size());
  fit_picture(picture, options, pixels);
  std::ranges::transform(pixels, features.begin(), byte_of);
}

std::string_view name_of(PictureInterpolation interpolation) {
  if (interpolation == PictureInterpolation::nearest) return "nearest";
  return interpolation == PictureInterpolation::bilinear ? "bilinear" : "antialiased";
}

std::string_view name_of(PictureFit fit) {
  return fit == PictureFit::stretch ? "stretch" : fit == PictureFit::crop ? "crop" : "pad";
}

ArraySpec input_of(const PictureOptions& options) {
  return {.name = {}, .shape = Shape{options.height, options.width, options.channels}, .dtype = options.dtype};
}

ArraySpec target_of(const PictureOptions& options, const PictureFolder& folder) {
  const Shape one_hot{static_cast<std::int64_t>(folder.classes.size())};
  return {.name = {}, .shape = options.one_hot ? one_hot : Shape{}, .dtype = DType::f32};
}

class PictureSource : public SourceStage {
 public:
  PictureSource(PictureFolder folder, const PictureOptions& options)
      : SourceStage({.inputs = RowLayout({input_of(options)}), .targets = RowLayout({target_of(options, folder)})},
                    static_cast<std::int64_t>(folder.files.size())),
        folder_(std::move(folder)),
        options_(options) {}

  void load(std::uint64_t seed, std::int64_t epoch, std::int64_t position, Sample destination) const override {
    // The last word of a row of u8 may have bytes that belong to no pixel.
    if (options_.dtype != DType::f32) std::ranges::fill(destination.features, 0.0F);
    load_picture(file_of(position), options_, {layouts().inputs, destination.features});
    load_targets(seed, epoch, position, destination.targets);
  }

  void load_targets(std::uint64_t, std::int64_t, std::int64_t position, std::span<float> targets) const override {
    const std::int32_t label = file_of(position).label;
    std::ranges::fill(targets, 0.0F);
    if (options_.one_hot) {
      targets[static_cast<std::size_t>(label)] = 1.0F;
    } else {
      targets[0] = static_cast<float>(label);
    }
  }

  std::string place(std::int64_t position) const override {
    return fmt::format("the picture {}", quoted_path(file_of(position).path));
  }
  // Size and scale of samples are left out: the pictures are the same.
  std::string content() const override { return fmt::format("pictures {} {}", size(), folder_.digest); }

  void describe(nlohmann::ordered_json& stages) const override {
    nlohmann::ordered_json classes = nlohmann::ordered_json::array();
    for (const std::string& name : folder_.classes) classes.push_back(name);
    stages.push_back({{"kind", "pictures"},
                      // Height, width and type are those of the layouts, which the description holds elsewhere.
                      {"names_and_sizes", folder_.digest},
                      {"classes", std::move(classes)},
                      {"interpolation", name_of(options_.interpolation)},
                      {"fit", name_of(options_.fit)},
                      {"scale", options_.scale},
                      {"one_hot", options_.one_hot}});
  }

 private:
  const PictureFile& file_of(std::int64_t position) const { return folder_.files[static_cast<std::size_t>(position)]; }

  PictureFolder folder_;
  PictureOptions options_;
};

}  // namespace

Dataset read_pictures(const std::string& folder, const PictureOptions& options) {
  check_options(options);
  return Dataset(std::make_shared<PictureSource>(list_pictures(folder, options), options));
}

Tensor read_picture(const std::string& path, const PictureOptions& options) {
  check_options(options);
  // A link that the application names is followed, other than those of a folder.
  std::error_code failure;
  const std::filesystem::path resolved = std::filesystem::canonical(path, failure);
  // The size is taken as if the file had been listed, so that read_listed() reads it by its rules.
  const std::uintmax_t bytes = failure ? 0 : std::filesystem::file_size(resolved, failure);
  if (failure) throw system_error(failure.value(), fmt::format("cannot read the picture {}", quoted_path(path)));
  const RowLayout layout({input_of(options)});
  std::vector<float> row(layout.words());
  const ArrayRow array(layout, row);
  load_picture({.path = resolved.string(), .bytes = static_cast<std::int64_t>(bytes)}, options, array);
  Tensor picture(layout.arrays()[0].shape.with_batch(1), options.dtype);
  std::ranges::copy(array.bytes(0), picture.bytes().begin());
  return picture;
}

}  // namespace holdfast
