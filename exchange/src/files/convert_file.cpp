// Converts between all kinds of files. What the output cannot hold is not an error, since most conversions want
// weights alone, but each omission becomes a note. Half of an optimizer's state would move weights in wrong
// directions, so it is converted completely or not at all. Reasons: docs/decisions/exchange.md.

#include "holdfast/format/exchange/convert_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "bytes/array_prefixes.h"
#include "bytes/byte_source.h"
#include "holdfast/base/error.h"
#include "holdfast/format/exchange/keras.h"
#include "holdfast/format/exchange/npz.h"
#include "holdfast/format/exchange/pytorch.h"
#include "holdfast/format/exchange/safetensors.h"
#include "keras/keras_config_writer.h"
#include "keras/keras_names.h"
#include "keras/keras_optimizer_state.h"
#include "keras_files/keras_json.h"

namespace holdfast::format {
namespace {

// These stand in the order of ConvertTarget.
constexpr std::array<std::string_view, 9> kTargetNames = {
    "holdfast", "safetensors",          "npz",         "pytorch", "gpt2", "keras-weights",
    "keras",    "keras-legacy-weights", "keras-legacy"};

bool is_keras(ConvertTarget target) {
  return target >= ConvertTarget::keras_weights;
}

// In the order of ConvertTarget, from keras_weights on.
constexpr std::array kKerasForms = {KerasForm::weights, KerasForm::archive, KerasForm::legacy_weights,
                                    KerasForm::legacy_model};

KerasForm keras_form(ConvertTarget target) {
  return kKerasForms.at(static_cast<std::size_t>(target) - static_cast<std::size_t>(ConvertTarget::keras_weights));
}

// Keras recognises its files by their names, and does not load a file with another name.
void check_keras_name(const std::string& path, ConvertTarget target) {
  const bool is_legacy_name = (path.ends_with(".h5") || path.ends_with(".hdf5")) && !path.ends_with(".weights.h5");
  const auto require = [&](bool is_right, const std::string& end) {
    if (is_right) return;
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("cannot write {} as {}: Keras only loads it from a name that ends in {}; choose such a name", path,
                    name(target), end));
  };
  if (target == ConvertTarget::keras) require(path.ends_with(".keras"), ".keras");
  if (target == ConvertTarget::keras_weights) require(path.ends_with(".weights.h5"), ".weights.h5");
  if (target >= ConvertTarget::keras_legacy_weights) require(is_legacy_name, ".h5 (and not in .weights.h5)");
}

void check_output(FileSystem& files, const std::string& path, ConvertTarget target, bool replaces_output) {
  check_keras_name(path, target);
  if (replaces_output || !files.exists(path)) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} exists; choose another name, or allow replacing it (--force)", path));
}

// Every run has an iteration and a rate, so they do not show that there is an optimizer's state.
bool is_optimizer_slot(const std::string& name) {
  return name.starts_with(kOptimizerPrefix) && name != "optimizer/iteration" && name != "optimizer/learning_rate";
}

bool has_optimizer(const ArraySet& set) {
  return std::any_of(set.arrays.begin(), set.arrays.end(),
                     [](const NamedArray& array) { return is_optimizer_slot(array.name); });
}

// State that is that of a new optimizer counts as none: keras_to_savepoint makes it so.
bool has_optimizer_values(const ArraySet& savepoint) {
  const Json metadata = parse_keras_json(savepoint.metadata, "the savepoint's metadata");
  return std::any_of(savepoint.arrays.begin(), savepoint.arrays.end(), [&](const NamedArray& array) {
    return is_optimizer_slot(array.name) && array.bytes != initial_slot_bytes(array, savepoint.arrays, metadata);
  });
}

// Returns "savepoint", "keras" or the value of another writer.
std::string kind_of(const ArraySet& set) {
  return text_member(parse_keras_json(set.metadata, "the metadata"), "kind");
}

constexpr const char* kSavepoint = "savepoint";
constexpr const char* kKeras = "keras";

std::string describe(DType dtype, const std::vector<std::uint64_t>& shape) {
  return fmt::format("{} [{}]", name(dtype), fmt::join(shape, ", "));
}

// A savepoint that fits only in part would train on with random layers, so nothing is converted then.
[[noreturn]] void refuse_names(const std::string& problem) {
  throw Error(
      ErrorCode::incompatible,
      fmt::format("the arrays do not fit the given savepoint: {}; give a savepoint of the same model", problem));
}

// The averages of the weights become the weights. Frozen ones have none, and stay.
void take_averages(ArraySet& set) {
  // The names of the slot in savepoints, and in Keras's files.
  const std::array<std::string, 2> prefixes = {std::string(kOptimizerPrefix) + "moving_average/",
                                               std::string(kOptimizerPrefix) + "average/"};
  // By the name of the weight that each one is the average of.
  std::map<std::string, const NamedArray*> averages;
  for (const NamedArray& array : set.arrays) {
    for (const std::string& prefix : prefixes) {
      if (array.name.starts_with(prefix)) averages.emplace(kModelPrefix + array.name.substr(prefix.size()), &array);
    }
  }
  bool has_averages = false;
  for (NamedArray& array : set.arrays) {
    const auto found = averages.find(array.name);
    if (found == averages.end()) continue;
    if (found->second->dtype != array.dtype || found->second->shape != array.shape) {
      throw Error(ErrorCode::invalid_file, fmt::format("array {} is {}, and its average is {}; the file is damaged",
                                                       quoted_text(array.name), describe(array.dtype, array.shape),
                                                       describe(found->second->dtype, found->second->shape)));
    }
    array.bytes = found->second->bytes;
    has_averages = true;
  }
  if (has_averages) return;
  throw Error(ErrorCode::invalid_argument,
              "it has no moving averages of its weights, which a training with use_ema keeps; leave out --averages");
}

// Matches the arrays of `set` with those of `like` by name.
class ByName {
 public:
  ByName(const ArraySet& set, const ArraySet& like) : like_(like) {
    for (const NamedArray& array : set.arrays) unused_.emplace(array.name, &array);
  }

  ArraySet take() {
    // Asked before anything is taken: whether slots are taken at all depends on all of them.
    const bool has_all = std::all_of(like_.arrays.begin(), like_.arrays.end(),
                                     [&](const NamedArray& wanted) { return unused_.contains(wanted.name); });
    ArraySet result{.arrays = {}, .metadata = like_.metadata};
    // An optimizer's state is taken over completely or not at all.
    for (const NamedArray& wanted : like_.arrays) {
      // A missing array of the model is refused by take(); a missing slot leaves out all slots.
      if (has_all || wanted.name.starts_with(kModelPrefix)) result.arrays.push_back(take(wanted));
    }
    for (const auto& [name, array] : unused_) {
      if (name.starts_with(kModelPrefix)) refuse_names(fmt::format("the savepoint has no array {}", quoted_text(name)));
    }
    return result;
  }

 private:
  const NamedArray& take(const NamedArray& wanted) {
    const auto found = unused_.find(wanted.name);
    if (found == unused_.end()) refuse_names(fmt::format("array {} is missing", quoted_text(wanted.name)));
    const NamedArray& array = *found->second;
    if (array.dtype != wanted.dtype || array.shape != wanted.shape) {
      refuse_names(fmt::format("array {} is {} where the savepoint has {}", quoted_text(wanted.name),
                               describe(array.dtype, array.shape), describe(wanted.dtype, wanted.shape)));
    }
    unused_.erase(found);
    return array;
  }

  const ArraySet& like_;
  std::map<std::string, const NamedArray*> unused_;
};

// One conversion, step by step.
class Converter {
 public:
  Converter(FileSystem& files, std::string input, std::string output, const ConvertOptions& options)
      : files_(files), input_(std::move(input)), output_(std::move(output)), options_(options) {
    result_.to = options.to ? *options.to : convert_target_for(output_);
    // Checked before the input is read, which may take long.
    check_output(files, output_, result_.to, options.replaces_output);
  }

  Conversion convert() {
    try {
      return convert_all();
    } catch (const Error& error) {
      const std::string sentence = error.what();
      // A sentence that names a file already is complete.
      if (sentence.find(input_) != std::string::npos || sentence.find(output_) != std::string::npos) throw;
      // The sentence comes from code that knows arrays but no files, so the files are added here.
      const std::string like = options_.like.empty() ? "" : fmt::format(" like {}", options_.like);
      throw Error(error.code(), fmt::format("cannot convert {} to {}{}: {}", input_, output_, like, sentence));
    }
  }

 private:
  Conversion convert_all() {
    // All of the input is read before the output is opened, so both may be one file.
    ArraySet set = read();
    if (options_.takes_averages) take_averages(set);
    if (!options_.like.empty()) set = as_savepoint(set);
    report(fmt::format("writing {}", output_), 0, 1);
    write(std::move(set));
    return std::move(result_);
  }

  void report(const std::string& what, std::uint64_t done, std::uint64_t total) const {
    // Bytes are counted. What cannot be counted goes from 0 to 1.
    if (options_.progress) options_.progress(what, done, total);
  }

  ArraySet read() {
    const AnyFile file = AnyFile::open(files_, input_);
    result_.from = file.kind();
    return file.read_all(
        [this](std::uint64_t done, std::uint64_t total) { report(fmt::format("reading {}", input_), done, total); });
  }

  ArraySet as_savepoint(const ArraySet& set) {
    // The optimizer's state may be new for two reasons, and the note must name the right one.
    const ArraySet like = read_any(files_, options_.like);
    if (kind_of(like) != kSavepoint) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{} is not a savepoint; give one that a run wrote", options_.like));
    }
    ArraySet savepoint = to_savepoint(set, like);
    if (has_optimizer_values(savepoint)) return savepoint;
    if (has_optimizer(set)) {
      note(fmt::format("the optimizer's state of {} is left out: it does not fit the optimizer of {}", input_,
                       options_.like));
    } else if (has_optimizer(savepoint)) {
      note(fmt::format("the optimizer's state is that of a new one, since {} has none", input_));
    } else if (has_optimizer(like)) {
      note(fmt::format("the optimizer's state of {} is left out, since {} has none", options_.like, input_));
    }
    return savepoint;
  }

  void write(ArraySet set) {
    if (is_keras(result_.to)) return write_as_keras(set);
    if (result_.to == ConvertTarget::pytorch) return write_as_pytorch(set, PyTorchStyle::modules);
    if (result_.to == ConvertTarget::gpt2) return write_as_pytorch(set, PyTorchStyle::gpt2);
    if (result_.to == ConvertTarget::holdfast) add_model(set);
    count(set);
    const std::vector<ArrayView> arrays = views(set.arrays);
    if (result_.to == ConvertTarget::safetensors) return write_safetensors(files_, output_, set.metadata, arrays);
    if (result_.to == ConvertTarget::npz) return write_as_npz(set, arrays);
    const auto progress = [this](std::uint64_t done, std::uint64_t total) {
      report(fmt::format("writing {}", output_), done, total);
    };
    write_array_file(files_, output_, set.metadata, arrays,
                     {.compression = options_.compression, .zstd_level = options_.zstd_level, .progress = progress});
  }

  // The metadata of a Keras model also describes the layers then, and the arrays are all that they need, so that
  // load_model() reads the file. Arrays alone are worth a file, so a model that Holdfast does not have is a note.
  void add_model(ArraySet& set) {
    Json metadata = parse_keras_json(set.metadata, "the metadata");
    const bool is_model =
        text_member(metadata, "kind") == kKeras && !text_member(member(metadata, "keras"), "config").empty();
    if (!is_model) return;
    try {
      // The description of the Keras file is renamed with the layers, so it is taken
      // over as soon as one has another name.
      for (std::string& sentence : rename_layers(set, metadata)) {
        note(std::move(sentence));
        set.metadata = metadata.dump();
      }
      KerasModelGraph model = keras_model_graph(set);
      for (std::string& sentence : model.notes) note(std::move(sentence));
      metadata["graph"] = parse_keras_json(model.graph, "the model's graph");
      for (NamedArray& array : model.arrays) add_array(std::move(array), set, metadata["keras"]);
    } catch (const Error& error) {
      // An empty file would be worth nothing.
      if (set.arrays.empty()) throw;
      result_.lacks_model = true;
      note(fmt::format("only the arrays are written, without the model: {}", error.what()));
      return;
    }
    std::sort(set.arrays.begin(), set.arrays.end(),
              [](const NamedArray& a, const NamedArray& b) { return a.name < b.name; });
    set.metadata = metadata.dump();
  }

  // The description of the Keras file keeps what was added, so that the same file can be written again.
  static void add_array(NamedArray array, ArraySet& set, Json& keras) {
    const auto found = std::find_if(set.arrays.begin(), set.arrays.end(),
                                    [&](const NamedArray& other) { return other.name == array.name; });
    if (found == set.arrays.end()) {
      keras["added"].push_back(array.name);
      set.arrays.push_back(std::move(array));
    } else if (found->shape.empty() && !array.shape.empty()) {
      // Keras keeps one number as a scalar where Holdfast has an array of one element.
      keras["scalars"].push_back(array.name);
      *found = std::move(array);
    }
  }

  void write_as_npz(const ArraySet& set, const std::vector<ArrayView>& arrays) {
    write_npz(files_, output_, set.metadata, arrays);
    if (std::any_of(arrays.begin(), arrays.end(), [](const ArrayView& view) { return view.dtype == DType::bf16; })) {
      note(
          "NumPy has no bf16: numpy.load returns such arrays as voids of two bytes, and array.view(ml_dtypes.bfloat16) "
          "gives their numbers");
    }
  }

  void write_as_pytorch(const ArraySet& set, PyTorchStyle style) {
    require_model(set, false);
    const ArraySet state_dict = to_pytorch(set, style);
    count(state_dict);
    write_safetensors(files_, output_, state_dict.metadata, views(state_dict.arrays));
    note_left_out(set, [](const std::string& name) { return name.starts_with(kModelPrefix); });
    note_metadata();
  }

  void write_as_keras(const ArraySet& set) {
    // Keras needs to know layers, which only a savepoint's graph or Keras's own configuration says.
    const std::string kind = require_model(set, true);
    // What was written is known only afterwards: a form without an optimizer leaves its state out.
    const std::vector<ArrayInfo> written = write_keras(files_, output_, set, keras_form(result_.to));
    std::set<std::string> names;
    for (const ArrayInfo& array : written) {
      names.insert(array.name);
      result_.bytes += size_bytes(array);
    }
    result_.arrays = written.size();
    // Slots have other names in Keras: "momentum" for "m".
    const bool keeps_optimizer =
        std::any_of(names.begin(), names.end(), [](const std::string& name) { return is_optimizer_slot(name); });
    const Json metadata = parse_keras_json(set.metadata, "the metadata");
    const std::string missing = kind == kSavepoint ? training_that_keras_lacks(metadata) : "";
    note_left_out(
        set,
        [&](const std::string& name) {
          return names.contains(name) || (keeps_optimizer && name.starts_with(kOptimizerPrefix));
        },
        missing.empty() ? "" : fmt::format(": Keras does not have {}", missing));
    if (kind == kSavepoint) note_metadata();
  }

  // Returns the metadata's kind.
  // Files of arrays alone have names, but nothing says which layer an array belongs to, or in what order.
  std::string require_model(const ArraySet& set, bool takes_keras) const {
    std::string kind = kind_of(set);
    if (kind == kSavepoint || (takes_keras && kind == kKeras)) return kind;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("cannot write {} as {}: {} does not say which layers its arrays belong to; name a "
                            "savepoint of the same model (--like)",
                            output_, name(result_.to), input_));
  }

  // `reason` ends the note about the optimizer's state.
  template <typename IsKept>
  void note_left_out(const ArraySet& set, const IsKept& is_kept, const std::string& reason = "") {
    // One note for all slots: a model of hundreds of layers has twice as many of them.
    std::size_t slots = 0;
    for (const NamedArray& array : set.arrays) {
      if (is_kept(array.name)) continue;
      if (array.name.starts_with(kOptimizerPrefix)) {
        ++slots;
      } else {
        note(fmt::format("array {} is left out: the output has no place for it", quoted_text(array.name)));
      }
    }
    // The user may expect the optimizer to go on, so its absence is always said.
    if (slots > 0)
      note(fmt::format("the optimizer's state ({}{}) is left out{}", slots, slots == 1 ? " array" : " arrays", reason));
  }

  void note_metadata() {
    note("the metadata that the output has no place for (epoch, seed, history, callbacks) is left out");
  }

  void note(std::string sentence) { result_.notes.push_back(std::move(sentence)); }

  // Counts what is written, which may be less than what was read.
  void count(const ArraySet& set) {
    result_.arrays = set.arrays.size();
    result_.bytes = 0;
    for (const NamedArray& array : set.arrays) result_.bytes += array.bytes.size();
  }

  FileSystem& files_;
  const std::string input_;
  const std::string output_;
  const ConvertOptions& options_;
  Conversion result_;
};

}  // namespace

std::string_view name(ConvertTarget target) {
  return kTargetNames[static_cast<std::size_t>(target)];
}

ConvertTarget convert_target_from_name(std::string_view name) {
  const auto found = std::find(kTargetNames.begin(), kTargetNames.end(), name);
  if (found != kTargetNames.end()) return static_cast<ConvertTarget>(found - kTargetNames.begin());
  throw Error(ErrorCode::invalid_argument, fmt::format("{} is not a kind of file that can be written; use one of {}",
                                                       quoted_text(name), fmt::join(kTargetNames, ", ")));
}

ConvertTarget convert_target_for(const std::string& path) {
  // The longer ending comes first: ".weights.h5" ends in ".h5", too.
  constexpr std::array<std::pair<std::string_view, ConvertTarget>, 5> kEnds = {{
      {".weights.h5", ConvertTarget::keras_weights},
      {".h5", ConvertTarget::holdfast},
      {".keras", ConvertTarget::keras},
      {".safetensors", ConvertTarget::safetensors},
      {".npz", ConvertTarget::npz},
  }};
  for (const auto& [end, target] : kEnds) {
    if (path.ends_with(end)) return target;
  }
  throw Error(ErrorCode::invalid_argument,
              fmt::format("the name of {} does not say what kind of file to write; end it in .h5 (Holdfast), "
                          ".safetensors, .npz, .keras or .weights.h5 (Keras), or name the kind (--to)",
                          path));
}

Conversion convert_file(FileSystem& files, const std::string& input, const std::string& output,
                        const ConvertOptions& options) {
  return within_memory(input, [&] { return Converter(files, input, output, options).convert(); });
}

ArraySet to_savepoint(const ArraySet& set, const ArraySet& like) {
  if (kind_of(set) == kKeras) return keras_to_savepoint(set, like);
  const bool has_our_names = std::any_of(set.arrays.begin(), set.arrays.end(),
                                         [](const NamedArray& array) { return array.name.starts_with(kModelPrefix); });
  // Names without our prefix can only be those of a state dict, so PyTorch's layouts are assumed.
  if (!has_our_names) return from_pytorch(set, like);
  if (kind_of(like) != kSavepoint) {
    throw Error(ErrorCode::invalid_argument,
                "cannot turn the arrays into a savepoint: the file to imitate is not a savepoint (its metadata is not "
                "of kind \"savepoint\"); give a savepoint of the same model");
  }
  return ByName(set, like).take();
}

}  // namespace holdfast::format
