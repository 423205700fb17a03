#pragma once

// Reads a folder of pictures, JPEG and PNG, with one folder for each class:
//
//   flowers/rose/1.jpg  flowers/rose/2.png  flowers/tulip/a.jpg
//
//   const Dataset flowers = read_pictures("flowers", {.height = 64, .width = 64});
//   picture_classes("flowers");  // {"rose", "tulip"}: class 0 and class 1
//
// A file is read and decoded when its sample is loaded, by the threads of prefetch(). Use several, as decoding takes
// longer than most steps: .prefetch(4, {.threads = 4}). Files and classes are in the order of the bytes of their names,
// whatever the locale and the file system say.
//
// Pixels are taken as they are stored: an orientation in EXIF data and color profiles have no influence, as in Keras.
// What is read is checked, since pictures come from outside: sizes before memory is taken, links, and damage. A picture
// that is cut off or has a wrong checksum is an error that names the file.

#include <cstdint>
#include <string>
#include <vector>

#include "holdfast/base/dtype.h"
#include "holdfast/core/tensor.h"
#include "holdfast/data/dataset.h"

namespace holdfast {

// How a picture gets another size. Centers of pixels are at halves, as in Keras, PIL and torchvision.
enum class PictureInterpolation {
  nearest,      // the nearest pixel alone
  bilinear,     // of the four nearest pixels, as Keras does; a picture that shrinks a lot looks grainy
  antialiased,  // bilinear, but of all pixels that shrink into one, as PIL and torchvision do
};

// What happens to a picture whose sides have another ratio than height and width.
enum class PictureFit {
  stretch,  // each side is scaled by itself
  crop,     // leaves out equal parts at both ends of the longer side; Keras calls it crop_to_aspect_ratio
  pad,      // adds equal black parts at both ends of the shorter side
};

// What read_pictures() makes of files.
struct PictureOptions {
  std::int64_t height = 0;  // of a sample, in pixels; both are needed
  std::int64_t width = 0;   // as height
  int channels = 3;         // 1: gray, 3: red, green, blue, 4: and alpha, which is 255 in a picture without it
  PictureInterpolation interpolation = PictureInterpolation::bilinear;  // see PictureInterpolation
  PictureFit fit = PictureFit::stretch;                                 // see PictureFit
  DType dtype = DType::f32;     // or u8: a quarter of the memory, for a model that begins with Rescaling
  float scale = 1.0F / 255.0F;  // of f32: feature = pixel * scale
  bool one_hot = false;         // targets [classes], for CategoricalCrossentropy and mixup()
  // Folders of classes, in the order of their numbers; others are left out. Empty: all, sorted.
  std::vector<std::string> classes = {};
  // Limits, each of which is checked before the memory for what exceeds it is taken.
  std::int64_t max_file_bytes = std::int64_t{64} << 20;
  std::int64_t max_pixels = 50'000'000;  // height * width of a file; decoding takes 3 bytes a pixel and more
  std::int64_t max_files = 10'000'000;
};

// Samples have features [height, width, channels] and a scalar target, the number of their class. Folders within that
// of a class belong to the class. Names that begin with a dot are left out, and so are files whose names do not end as
// those of pictures do.
//
// The description has a digest of the names and sizes of all files, not of their content, which would have to be read.
// A file whose size changes after it was listed is an error when it is loaded.
//
// Throws Error{invalid_argument} for options that can never work, a class that has no folder, and a class without
// pictures. Throws Error{unsupported} for pictures of other formats (.gif, .bmp, .webp, .tif, .tiff), which are not
// left out silently, and Error{refused} for links that leave the folder or lead to a folder. Throws Error{not_found},
// {refused} or {input_output} if a folder cannot be read.
//
// Loading throws Error{invalid_file} that names the file if it is damaged, neither JPEG nor PNG (the content decides,
// not the name), or exceeds a limit; Error{unsupported} for JPEG with four colors (CMYK).
Dataset read_pictures(const std::string& folder, const PictureOptions& options);

// The names of the folders in `folder`, sorted: the classes of read_pictures() without `classes`.
std::vector<std::string> picture_classes(const std::string& folder);

// One picture as Model::predict() takes it: [1, height, width, channels], with the bits of a sample of
// read_pictures(). Options of classes have no influence. Throws like loading a sample.
Tensor read_picture(const std::string& path, const PictureOptions& options);

}  // namespace holdfast
