// Which compression is quicker depends on the disk and on the moment, so it is measured once and recorded: otherwise
// the files of one run would change their kind from start to start. A failure here costs only speed, so it never fails
// a savepoint. docs/decisions/compression.md

#include "train/saving/compression_choices.h"

#include <fmt/format.h>

#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "holdfast/base/error.h"
#include "holdfast/base/whole_file.h"

namespace holdfast {
namespace {

using Json = nlohmann::json;

// Next to the savepoints: another folder may lie on another disk.
std::string record_path(const std::string& folder) {
  return folder + "/compression.json";
}

std::string sentence(const CompressionFigures& figures) {
  return fmt::format("saving a sample of {:.1f} MB twice took {:.4f} s with fast and {:.4f} s with none",
                     static_cast<double>(figures.sample_bytes) / 1e6, figures.fast_seconds, figures.none_seconds);
}

std::string record_of(const CompressionChoices::Choice& choice, const CompressionFigures& figures) {
  const Json object = {{"compression", to_string(choice.compression)},
                       {"why", choice.why},
                       {"sample_bytes", figures.sample_bytes},
                       {"fast", {{"seconds", figures.fast_seconds}, {"file_bytes", figures.fast_file_bytes}}},
                       {"none", {{"seconds", figures.none_seconds}, {"file_bytes", figures.none_file_bytes}}}};
  return object.dump(1) + "\n";
}

// Empty for text that record_of() did not write.
std::optional<SavepointCompression> recorded_compression(const std::string& text) {
  const Json object = Json::parse(text, nullptr, false);
  if (!object.is_object()) return std::nullopt;
  const Json name = object.value("compression", Json());
  for (const SavepointCompression known : {SavepointCompression::fast, SavepointCompression::none}) {
    if (name == to_string(known)) return known;
  }
  return std::nullopt;
}

}  // namespace

CompressionChoices::CompressionChoices(FileSystem& files, Measure measure)
    : files_(files), measure_(std::move(measure)) {}

SavepointCompression CompressionChoices::choose(
    const std::string& folder, const Snapshot& snapshot, int threads,
    const std::function<void(const std::string& record, const Choice& choice)>& when_made) {
  // The answer for a folder never changes while the process lives.
  auto known = choices_.find(folder);
  if (known == choices_.end()) {
    known = choices_.emplace(folder, make(folder, snapshot, threads)).first;
    if (when_made) when_made(record_path(folder), known->second);
  }
  return known->second.compression;
}

CompressionChoices::Choice CompressionChoices::make(const std::string& folder, const Snapshot& snapshot, int threads) {
  const std::string path = record_path(folder);
  try {
    if (files_.exists(path)) {
      const std::optional<SavepointCompression> recorded = recorded_compression(read_text_file(files_, path));
      // A record that cannot be understood is passed over, and replaced where the storage is measured again.
      if (recorded) return {*recorded, fmt::format("recorded in {}", path)};
    }
    if (size_bytes(snapshot) < kSmallestMeasured) {
      return {SavepointCompression::fast,
              fmt::format("a state of {} bytes is too small to measure the storage with", size_bytes(snapshot))};
    }
    return measure(folder, snapshot, threads);
  } catch (const Error& failure) {
    return {SavepointCompression::fast, fmt::format("the storage could not be measured: {}", failure.what())};
  } catch (const std::bad_alloc&) {
    // The savepoint itself may have enough. Where it has not, its write says so.
    return {SavepointCompression::fast,
            "the storage could not be measured, since memory is short; a later start will measure again"};
  }
}

CompressionChoices::Choice CompressionChoices::measure(const std::string& folder, const Snapshot& snapshot,
                                                       int threads) {
  // Measured with this state itself: how well numbers compress depends on the model.
  const CompressionFigures figures = measure_(files_, folder, snapshot, threads);
  Choice choice{figures.quicker, sentence(figures)};
  const std::string record = record_of(choice, figures);
  try {
    write_whole_file(files_, record_path(folder), std::as_bytes(std::span(record)));
  } catch (const Error& failure) {
    choice.why +=
        fmt::format("; a later start will measure again, because the record could not be written: {}", failure.what());
  }
  return choice;
}

}  // namespace holdfast
