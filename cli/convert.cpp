#include "convert.h"

#include "exit_code.h"
#include "holdfast/base/error.h"
#include "holdfast/format/exchange/convert_file.h"
#include "progress.h"
#include "text.h"

namespace holdfast::cli {
namespace {

using format::Compression;
using format::ConvertTarget;

void check_compression(const ConvertOptions& options, ConvertTarget target) {
  if (options.zstd_level && options.compression.value_or(Compression::zstd) != Compression::zstd) {
    throw Error(ErrorCode::invalid_argument, "only --compression zstd has levels; leave out --level");
  }
  if ((options.compression || options.zstd_level) && target != ConvertTarget::holdfast) {
    throw Error(ErrorCode::invalid_argument, "only Holdfast's files are compressed, and " + options.output +
                                                 " is to be of kind " + std::string(name(target)) +
                                                 "; leave out --compression and --level");
  }
}

format::ConvertOptions library_options(const ConvertOptions& options, Progress& progress) {
  const ConvertTarget target =
      options.to.empty() ? format::convert_target_for(options.output) : format::convert_target_from_name(options.to);
  check_compression(options, target);
  return {.to = target,
          .like = options.like,
          .replaces_output = options.replaces_output,
          .compression = options.compression.value_or(options.zstd_level ? Compression::zstd : Compression::fast),
          .zstd_level = options.zstd_level.value_or(1),
          .progress = [&](const std::string& what, std::uint64_t done, std::uint64_t total) {
            progress.set_what(what);
            progress.show(done, total);
          }};
}

}  // namespace

int convert(FileSystem& files, const ConvertOptions& options, Console& console) {
  const format::Conversion result = [&] {
    Progress progress(console, "reading " + options.input);
    return format::convert_file(files, options.input, options.output, library_options(options, progress));
  }();
  console.out << "wrote " << printable(options.output) << " (" << name(result.to)
              << "): " << describe_count(result.arrays, "array") << ", " << describe_count(result.bytes, "byte")
              << ", from " << printable(options.input) << " (" << name(result.from) << ")\n";
  // Notes name what cannot be converted, and names in an unknown file may be of any length.
  constexpr std::size_t kMaxNoteBytes = 8192;
  for (const std::string& note : result.notes) {
    console.out << "note: " << shortened(printable(note), kMaxNoteBytes) << "\n";
  }
  return kDone;
}

}  // namespace holdfast::cli
