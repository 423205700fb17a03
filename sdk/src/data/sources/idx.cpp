// Images stay bytes in memory, a quarter of their size as floats, and become floats when a sample is
// loaded. The description has digests of both files, so that a run which resumes with other data is
// refused. See docs/decisions/stages.md.

#include "holdfast/data/idx.h"

#include <fmt/format.h>

#include <cmath>
#include <new>
#include <nlohmann/json.hpp>

#include "data/sources/idx_file.h"
#include "data/stages/stage.h"
#include "holdfast/base/digest.h"
#include "holdfast/base/error.h"
#include "holdfast/base/shown_text.h"

namespace holdfast {
namespace {

class IdxSource : public SourceStage {
 public:
  IdxSource(IdxFile images, IdxFile labels, const std::string& labels_path, float scale)
      : SourceStage(plain_layouts(Shape{images.shape[1], images.shape[2], 1}, Shape{}), images.shape[0]),
        images_(std::move(images.elements)),
        labels_(std::move(labels.elements)),
        labels_path_(labels_path),
        scale_(scale),
        image_digest_(digest(std::as_bytes(std::span(images_)))),
        label_digest_(digest(std::as_bytes(std::span(labels_)))) {}

  void load(std::uint64_t, std::int64_t, std::int64_t position, Sample destination) const override {
    const auto sample = static_cast<std::size_t>(position);
    // A sample of plain layouts is a float for each pixel and nothing else.
    const std::size_t pixels = destination.features.size();
    const std::uint8_t* const __restrict image = images_.data() + sample * pixels;
    // One product for each pixel, so vectors of any width give the same bits.
    float* const __restrict features = destination.features.data();
#pragma omp simd
    for (std::size_t i = 0; i < pixels; ++i) features[i] = static_cast<float>(image[i]) * scale_;
    destination.targets[0] = labels_[sample];
  }

  void load_targets(std::uint64_t, std::int64_t, std::int64_t position, std::span<float> targets) const override {
    targets[0] = labels_[static_cast<std::size_t>(position)];
  }
  std::string place(std::int64_t position) const override {
    return fmt::format("label {} of {}", position, quoted_path(labels_path_));
  }
  // The scale is left out: the samples are the same.
  std::string content() const override {
    return fmt::format("idx {} {} {}", feature_shape().with_batch(size()).to_string(), image_digest_.hex(),
                       label_digest_.hex());
  }

  void describe(nlohmann::ordered_json& stages) const override {
    stages.push_back({{"kind", "idx"},
                      {"images", feature_shape().with_batch(size()).extents()},
                      {"scale", scale_},
                      {"image_digest", image_digest_.hex()},
                      {"label_digest", label_digest_.hex()}});
  }

 private:
  std::vector<std::uint8_t> images_;  // [size, rows, columns]
  std::vector<std::uint8_t> labels_;  // [size]
  std::string labels_path_;
  float scale_;
  Digest image_digest_;
  Digest label_digest_;
};

void check_rank(const std::string& path, const IdxFile& file, std::size_t rank, const std::string& wanted) {
  if (file.shape.rank() == rank) return;
  throw Error(ErrorCode::invalid_file,
              fmt::format("{} holds an array of shape {}, not {}", quoted_path(path), file.shape.to_string(), wanted));
}

}  // namespace

Dataset read_idx(const std::string& images_path, const std::string& labels_path, IdxOptions options) {
  if (!std::isfinite(options.scale)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("read_idx() needs a finite scale for pixels, not {}", options.scale));
  }
  // The rank is looked at before the labels are read: two paths that were exchanged are the usual mistake.
  const IdxLimit limit{.bytes = options.max_bytes, .option = "IdxOptions::max_bytes"};
  IdxFile images = read_idx_file(images_path, limit);
  check_rank(images_path, images, 3, "images [count, rows, columns]");
  IdxFile labels = read_idx_file(labels_path, limit);
  check_rank(labels_path, labels, 1, "labels [count]");
  // Files of two data sets, or of training and test, are easily mixed. Their counts usually show it.
  if (images.shape[0] != labels.shape[0]) {
    throw Error(ErrorCode::invalid_file,
                fmt::format("{} holds {} images, but {} holds {} labels", quoted_path(images_path), images.shape[0],
                            quoted_path(labels_path), labels.shape[0]));
  }
  return Dataset(std::make_shared<IdxSource>(std::move(images), std::move(labels), labels_path, options.scale));
}

Tensor read_idx_tensor(const std::string& path, const IdxTensorOptions& options) {
  const IdxFile file = read_idx_file(path, {.bytes = options.max_bytes, .option = "IdxTensorOptions::max_bytes"});
  // Floats take four times the bytes that the limit allows, so they may not fit although the bytes did.
  try {
    return Tensor(file.shape, std::vector<float>(file.elements.begin(), file.elements.end()));
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::out_of_memory,
                fmt::format("the {} elements of {} do not fit into memory as 32-bit floats; read_idx() keeps them "
                            "as bytes",
                            file.elements.size(), quoted_path(path)));
  }
}

}  // namespace holdfast
