// Conversion itself is in the format library; here its options are checked and its notes printed. A note names whatever
// the output has no place for: most conversions want the weights alone, so that is not an error, but it is always said.
// docs/decisions/exchange.md

#include <fmt/format.h>

#include "holdfast/base/error.h"
#include "holdfast/format/exchange/convert_file.h"
#include "option_checks.h"
#include "progress.h"
#include "subcommands.h"
#include "text.h"

namespace holdfast::cli {
namespace {

using format::Compression;
using format::ConvertTarget;

struct ConvertOptions {
  std::string input;
  std::string output;
  std::string to{};    // the name of a format::ConvertTarget; empty: chosen by the extension of `output`
  std::string like{};  // a savepoint of the same model
  bool takes_averages = false;
  bool replaces_output = false;
  std::optional<format::Compression> compression{};  // for Holdfast files only
  std::optional<int> zstd_level{};                   // implies Compression::zstd
};

// An option without effect is refused, because a user would believe that it had one.
void check_compression(const ConvertOptions& options, ConvertTarget target) {
  if (options.zstd_level && options.compression.value_or(Compression::zstd) != Compression::zstd) {
    throw Error(ErrorCode::invalid_argument, "--level needs --compression zstd; leave out --level, or choose zstd");
  }
  if ((options.compression || options.zstd_level) && target != ConvertTarget::holdfast) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("--compression and --level are for Holdfast files, and {} will be a file of kind {}; leave "
                            "them out",
                            options.output, name(target)));
  }
}

format::ConvertOptions library_options(const ConvertOptions& options, Progress& progress) {
  const ConvertTarget target =
      options.to.empty() ? format::convert_target_for(options.output) : format::convert_target_from_name(options.to);
  check_compression(options, target);
  return {.to = target,
          .like = options.like,
          .takes_averages = options.takes_averages,
          .replaces_output = options.replaces_output,
          .compression = options.compression.value_or(options.zstd_level ? Compression::zstd : Compression::fast),
          .zstd_level = options.zstd_level.value_or(1),
          .progress = [&](const std::string& what, std::uint64_t done, std::uint64_t total) {
            progress.set_what(what);
            progress.show(done, total);
          }};
}

// Prints to `console.out` what was written and what was left out. Returns the exit code. Throws what
// format::convert_file throws, and Error{invalid_argument} when a compression is given for a file that is not
// Holdfast's.
int convert(FileSystem& files, const ConvertOptions& options, Console& console) {
  const format::Conversion result = [&] {
    // The end of this block clears the progress line before the result is printed.
    Progress progress(console, fmt::format("reading {}", options.input));
    return format::convert_file(files, options.input, options.output, library_options(options, progress));
  }();
  console.out << "wrote " << printable(options.output) << " (" << name(result.to)
              << "): " << describe_count(result.arrays, "array") << ", " << describe_count(result.bytes, "byte")
              << ", from " << printable(options.input) << " (" << name(result.from) << ")\n";
  // Notes quote names from an unknown file, which may have any length.
  constexpr std::size_t kMaxNoteBytes = 8192;
  for (const std::string& note : result.notes) {
    console.out << "note: " << shortened(printable(note), kMaxNoteBytes) << "\n";
  }
  // The arrays are written in both cases. A script learns from the code that the model of the input is not in the
  // output.
  return result.lacks_model ? kWithoutModel : kDone;
}

void add_compression(CLI::App& command, ConvertOptions& options) {
  add_choice<Compression>(
      command, "--compression", options.compression,
      "For a Holdfast file: fast (default), zstd, or none (portable: any HDF5 program reads it without a plugin)",
      {{"fast", Compression::fast}, {"zstd", Compression::zstd}, {"none", Compression::none}});
  command.add_option("--level", options.zstd_level, "For zstd: -7 (fastest) to 22 (smallest)")
      ->check(CLI::Range(-7, 22).description(""));
}

void add_convert_options(CLI::App& command, ConvertOptions& options) {
  command.add_option("IN", options.input, kAnyFile)->required();
  command
      .add_option("OUT", options.output,
                  "The file to write: .h5 (Holdfast), .safetensors, .npz, .keras, .weights.h5 (Keras)")
      ->required();
  command
      .add_option("--to", options.to,
                  "The kind of OUT, if its name does not say it; pytorch: safetensors with the names and layouts of a "
                  "PyTorch state dict; gpt2: with those of Hugging Face's GPT-2")
      ->type_name("holdfast|safetensors|npz|pytorch|gpt2|keras-weights|keras|keras-legacy-weights|keras-legacy");
  command
      .add_option("--like", options.like,
                  "A savepoint of the same model, whose names and shapes turn weights of Keras or PyTorch into a "
                  "savepoint")
      ->type_name("SAVEPOINT");
  add_compression(command, options);
  command.add_flag("--averages", options.takes_averages,
                   "Write the moving averages of the weights (use_ema) as the weights");
  command.add_flag("--force", options.replaces_output, "Replace OUT if it exists");
}

}  // namespace

void add_convert(Subcommands& commands) {
  commands.add<ConvertOptions>(
      "convert", "Write a file's arrays as a file of another kind, and name what that kind cannot hold",
      add_convert_options,
      [&commands](const ConvertOptions& options) { return convert(commands.files, options, commands.console); });
}

}  // namespace holdfast::cli
