// Several processes write one file. Where a slice begins depends on the encoded sizes of the slices before
// it. So every process encodes first, and then learns the sizes of all others from their summaries. Only
// slice 0 creates and renames the file; the index is put together from the summaries. The bytes equal
// those of write_array_file() because both use PieceEncoder.

#include "holdfast/format/slice_writer.h"

#include <fmt/format.h>

#include <new>
#include <optional>
#include <utility>

#include "array_files/array_content.h"
#include "container/byte_order.h"
#include "container/parallel.h"
#include "container/piece_encoder.h"
#include "holdfast/base/error.h"
#include "holdfast/base/whole_writer.h"

namespace holdfast::format {
namespace {

// Appends one run of a summary: its length in the file, its pieces, and the digests of its leaves.
void append_run(std::vector<std::byte>& bytes, const PieceEncoder::RunResult& result, std::uint64_t stored_bytes) {
  append(bytes, stored_bytes);
  append(bytes, static_cast<std::uint32_t>(result.pieces.size()));
  append(bytes, static_cast<std::uint32_t>(result.leaves.size()));
  for (const Piece& piece : result.pieces) {
    append(bytes, piece.stored_bytes);
    append(bytes, piece.digest);
  }
  for (const Digest& leaf : result.leaves) append(bytes, leaf);
}

// The other process writes the bytes itself, so their number and their digests are enough.
struct SummarizedRun {
  std::uint64_t stored_bytes = 0;
  PieceEncoder::RunResult result;
};

// The summary comes from another process, so its numbers may be wrong.
SummarizedRun read_run(ByteReader& summary) {
  SummarizedRun run;
  run.stored_bytes = summary.integer<std::uint64_t>();
  const auto pieces = summary.integer<std::uint32_t>();
  const auto leaves = summary.integer<std::uint32_t>();
  for (std::uint32_t i = 0; i < pieces; ++i) {
    const auto stored_bytes = summary.integer<std::uint32_t>();
    run.result.pieces.push_back({stored_bytes, summary.digest()});
  }
  for (std::uint32_t i = 0; i < leaves; ++i) run.result.leaves.push_back(summary.digest());
  return run;
}

}  // namespace

struct SliceWriter::State {
  State(FileSystem& file_system, const std::string& file_path, std::string_view metadata_json,
        std::span<const ArrayView> arrays, const Slice& own_slice, const WriteOptions& write_options)
      : files(file_system),
        path(file_path),
        slice(own_slice),
        options(write_options),
        content(path, metadata_json, arrays, options),
        encoder(content.metadata, content.sorted, options.compression),
        first_run(first_of(slice.slice)),
        encoded(first_of(slice.slice + 1) - first_run) {
    if (slice.slice == 0) target.emplace(files, path);
  }

  // Slices get equal numbers of runs, as far as possible.
  std::size_t first_of(int number) const {
    return encoder.runs().size() * static_cast<std::size_t>(number) / static_cast<std::size_t>(slice.slices);
  }

  // Slices that differ in their options would make a file whose index contradicts its pieces.
  [[noreturn]] void fail() const {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the slices of {} do not fit together; give every writer the same names, shapes, "
                            "metadata and options, and pass the summaries in the order of the slices",
                            path));
  }

  // Encoded bytes stay in memory until all slices are known: before that, no offset is.
  void encode_runs() {
    const auto make_workspace = [&] { return PieceEncoder::Workspace(options); };
    for_each_in_threads(options.threads, encoded.size(), make_workspace, [&](auto& workspace, std::size_t i) {
      const std::span<const std::byte> bytes = encoder.encode(encoder.runs()[first_run + i], workspace);
      encoded[i].assign(bytes.begin(), bytes.end());
    });
  }

  // Returns the name of the temporary file and the offset at which this slice begins in it.
  std::pair<std::string, std::uint64_t> take_summaries(std::span<const std::vector<std::byte>> summaries) {
    std::string temporary;
    std::uint64_t offset = kDataOffset;
    std::uint64_t own_offset = offset;
    std::size_t run = 0;
    for (std::size_t number = 0; number < summaries.size(); ++number) {
      ByteReader reader(summaries[number], [this] { fail(); });
      if (static_cast<int>(number) == slice.slice) own_offset = offset;
      const std::string name = reader.text(reader.integer<std::uint32_t>());
      // Only slice 0 knows the name of the temporary file; the other summaries have an empty one.
      if (number == 0) temporary = name;
      while (reader.left() > 0) {
        const SummarizedRun summarized = read_run(reader);
        if (run == encoder.runs().size() || !encoder.fits(encoder.runs()[run], summarized.result)) fail();
        encoder.set_result(encoder.runs()[run++], summarized.result);
        offset += summarized.stored_bytes;
      }
    }
    const bool is_complete = static_cast<int>(summaries.size()) == slice.slices && run == encoder.runs().size();
    if (!is_complete) fail();
    return {temporary, own_offset};
  }

  FileSystem& files;
  std::string path;
  Slice slice;
  WriteOptions options;
  ArrayContent content;
  PieceEncoder encoder;
  std::size_t first_run;
  std::vector<std::vector<std::byte>> encoded;
  std::optional<WholeWriter> target;  // for slice 0 only
};

SliceWriter::SliceWriter(FileSystem& files, const std::string& path, std::string_view metadata_json,
                         std::span<const ArrayView> arrays, const Slice& slice, const WriteOptions& options) {
  if (slice.slices < 1 || slice.slice < 0 || slice.slice >= slice.slices) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("cannot write {}: slice {} of {} does not exist; slices are counted from 0", path,
                            slice.slice, slice.slices));
  }
  state_ = std::make_unique<State>(files, path, metadata_json, arrays, slice, options);
}
SliceWriter::~SliceWriter() = default;
SliceWriter::SliceWriter(SliceWriter&&) noexcept = default;
SliceWriter& SliceWriter::operator=(SliceWriter&&) noexcept = default;

std::vector<std::byte> SliceWriter::encode() {
  try {
    state_->encode_runs();
    const std::string temporary = state_->target ? state_->target->temporary() : "";
    // The bytes of a summary are private to one version: the processes of a run are the same program.
    std::vector<std::byte> summary;
    append(summary, static_cast<std::uint32_t>(temporary.size()));
    append(summary, std::string_view(temporary));
    for (std::size_t i = 0; i < state_->encoded.size(); ++i) {
      append_run(summary, state_->encoder.result(state_->encoder.runs()[state_->first_run + i]),
                 aligned(state_->encoded[i].size()));
    }
    return summary;
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::out_of_memory,
                fmt::format("there is no memory to encode slice {} of {}; use more slices or free some memory",
                            state_->slice.slice, state_->path));
  }
}

void SliceWriter::write(std::span<const std::vector<std::byte>> summaries) {
  // The results of all slices are needed in slice 0 for the index, and their sizes in every slice.
  auto [temporary, offset] = state_->take_summaries(summaries);
  // Slice 0 has created the file. The others open it by the name in the summary of slice 0.
  const std::unique_ptr<File> opened = state_->target ? nullptr : state_->files.open_for_writing(temporary);
  File& file = opened ? *opened : *state_->target->file();
  for (const std::vector<std::byte>& bytes : state_->encoded) {
    file.write_at(offset, bytes);
    file.start_write_back(offset, bytes.size());
    offset += aligned(bytes.size());
  }
  // Each process syncs what it wrote. After that, commit() may make the file visible.
  file.sync();
}

Digest SliceWriter::commit() {
  HOLDFAST_ASSERT(state_->target.has_value());
  const Digest result =
      write_structure(*state_->target->file(), state_->path, state_->encoder.finish(), state_->options);
  state_->target->commit();
  return result;
}

}  // namespace holdfast::format
