#pragma once

// Converts a file of one kind to another, as `holdfast convert` does. Arrays keep their bits wherever both kinds can
// hold them. Whatever the output cannot hold is named in Conversion::notes, never dropped in silence. The whole input
// is held in memory.
//
//   const Conversion done = convert_file(files, "savepoint.h5", "model.keras");
//   for (const std::string& note : done.notes) std::puts(note.c_str());

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

// The kinds of file that can be written.
enum class ConvertTarget {
  holdfast,              // array_file.h
  safetensors,           // with the input's names and layouts
  npz,                   // likewise
  pytorch,               // safetensors with PyTorch's names and layouts (pytorch.h)
  gpt2,                  // likewise, as Hugging Face's GPT-2 has them (PyTorchStyle::gpt2)
  keras_weights,         // KerasForm::weights
  keras,                 // KerasForm::archive
  keras_legacy_weights,  // KerasForm::legacy_weights
  keras_legacy,          // KerasForm::legacy_model
};

// The names that `holdfast convert --to` takes:
// "holdfast", "safetensors", "npz", "pytorch", "gpt2", "keras-weights", "keras", "keras-legacy-weights",
// "keras-legacy".
std::string_view name(ConvertTarget target);
// Throws Error{invalid_argument} for any other name.
ConvertTarget convert_target_from_name(std::string_view name);
// The target for a path's ending: .weights.h5, .h5 (holdfast), .keras, .safetensors or .npz. Throws
// Error{invalid_argument} for any other ending.
ConvertTarget convert_target_for(const std::string& path);

// All options have defaults; `to` and `like` are the ones that conversions usually need.
struct ConvertOptions {
  std::optional<ConvertTarget> to{};            // without a value: convert_target_for(output)
  std::string like{};                           // a savepoint of the same model; the arrays become one like it first
  bool takes_averages = false;                  // moving averages (use_ema) become the weights; they stay, too
  bool replaces_output = false;                 // otherwise an output that exists is an error
  Compression compression = Compression::fast;  // of ConvertTarget::holdfast
  int zstd_level = 1;                           // likewise
  // Receives how much of `what` ("reading in.h5") is done. May be called from any thread, one call at a time.
  std::function<void(const std::string& what, std::uint64_t done, std::uint64_t total)> progress{};
};

// What convert_file did.
struct Conversion {
  FileKind from = FileKind::holdfast;          // the kind of the input
  ConvertTarget to = ConvertTarget::holdfast;  // the kind of the output
  std::size_t arrays = 0;                      // in the output
  std::uint64_t bytes = 0;                     // of these arrays
  bool lacks_model = false;                    // the input is a model, of which only the arrays could be written
  std::vector<std::string> notes{};            // one sentence for each thing that was left out or may surprise
};

// Blocks until `output` is written, completely or not at all. `input` and `output` may be the same file. Throws
// Error{invalid_argument} for an output that exists or whose name Keras would not load, and for an input without
// averages where they are to be taken; Error{unsupported} for a Keras
// model without arrays that cannot become one of Holdfast, what reading `input` threw, and what the target's writer
// threw for arrays that it cannot hold.
Conversion convert_file(FileSystem& files, const std::string& input, const std::string& output,
                        const ConvertOptions& options = {});

// Returns the values of `set` as a savepoint like `like`, with the metadata of `like`. Arrays with Holdfast's names are
// matched by name, a Keras model's by keras_to_savepoint, all others as a PyTorch state dict by from_pytorch. An
// optimizer's state is taken over completely or not at all: where it is incomplete, the result has no such arrays
// (those of a new optimizer, for Keras weights). Throws Error{incompatible} naming the array, what was expected and
// what was found, and Error{invalid_argument} when `like` is not a savepoint.
ArraySet to_savepoint(const ArraySet& set, const ArraySet& like);

}  // namespace holdfast::format
