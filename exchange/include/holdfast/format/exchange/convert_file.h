#pragma once

// From one kind of file to another: what `holdfast convert` does.
//
// Arrays go over bit for bit wherever both sides have them; what the other side has no place for is named, never left
// out in silence. The input is held in memory whole.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/base/file_system.h"
#include "holdfast/format/array_file.h"
#include "holdfast/format/array_set.h"
#include "holdfast/format/exchange/any_file.h"

namespace holdfast::format {

enum class ConvertTarget {
  holdfast,              // array_file.h
  safetensors,           // with the names and layouts that the input has
  npz,                   // the same
  pytorch,               // safetensors with PyTorch's names and layouts (pytorch.h)
  keras_weights,         // the forms of keras.h
  keras,                 //
  keras_legacy_weights,  //
  keras_legacy,          //
};

// "holdfast", "safetensors", "npz", "pytorch", "keras-weights", "keras", "keras-legacy-weights", "keras-legacy".
std::string_view name(ConvertTarget target);
// Throws Error{invalid_argument} for another name.
ConvertTarget convert_target_from_name(std::string_view name);
// By the end of the name: .weights.h5, .h5, .keras, .safetensors, .npz. Throws Error{invalid_argument} for another.
ConvertTarget convert_target_for(const std::string& path);

struct ConvertOptions {
  std::optional<ConvertTarget> to{};  // convert_target_for(output) without it
  std::string like{};                 // a file with a savepoint of the same model: of its kind the arrays become first
  bool replaces_output = false;       // else an output that exists is an error
  Compression compression = Compression::fast;  // of Holdfast's files
  int zstd_level = 1;                           //
  // Told, one call at a time and from any thread, how much of `what` ("reading in.h5") is done.
  std::function<void(const std::string& what, std::uint64_t done, std::uint64_t total)> progress{};
};

struct Conversion {
  FileKind from = FileKind::holdfast;
  ConvertTarget to = ConvertTarget::holdfast;
  std::size_t arrays = 0;  // of the output
  std::uint64_t bytes = 0;
  std::vector<std::string> notes{};  // what was left out or is otherwise than one may think: a sentence each
};

// Writes `output` whole or not at all. Throws Error{invalid_argument} for an output that exists, or whose name Keras
// would not take; what reading `input` threw; what the writer of the target threw for arrays that it cannot hold.
Conversion convert_file(FileSystem& files, const std::string& input, const std::string& output,
                        const ConvertOptions& options = {});

// The values of `set` as a savepoint like `like`, with the metadata of `like`: by name where they have the names of
// Holdfast, as a Keras model's (keras_to_savepoint) or a PyTorch state dict's (from_pytorch) otherwise. Where `set` has
// nothing for some of `like`'s arrays outside of "model/" (the optimizer's state), those are left out; Keras weights
// make zeros of them. Throws Error{incompatible} naming the array, what was expected and what was found, and
// invalid_argument when `like` is no savepoint.
ArraySet to_savepoint(const ArraySet& set, const ArraySet& like);

}  // namespace holdfast::format
