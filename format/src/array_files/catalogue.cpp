// Finds savepoints. Damage is a property of a file, so a damaged one is set aside and the one before is
// the best there is. An error of the disk, or missing rights, may pass: going back silently would cost
// work that is perhaps not lost, so it ends the search unless a copy of the same step can be read. See
// docs/decisions/savepoints.md.

#include "holdfast/format/catalogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "holdfast/base/error.h"
#include "holdfast/base/temporary_files.h"
#include "holdfast/base/whole_file.h"
#include "holdfast/base/whole_number.h"

namespace holdfast::format {
namespace {

constexpr std::string_view kSavepointPrefix = "savepoint-";
constexpr std::string_view kSavepointSuffix = ".h5";
constexpr std::string_view kDamagedSuffix = ".damaged";
// Another process deletes a few files at most, so a search that starts again this often meets something else.
constexpr int kListings = 100;

}  // namespace

std::string savepoint_name(std::int64_t step) {
  return fmt::format("{}{:010}{}", kSavepointPrefix, step, kSavepointSuffix);
}

std::optional<std::int64_t> savepoint_step(std::string_view name) {
  if (name.size() < kSavepointPrefix.size() + kSavepointSuffix.size() || !name.starts_with(kSavepointPrefix))
    return std::nullopt;
  const auto step = whole_number<std::int64_t>(
      name.substr(kSavepointPrefix.size(), name.size() - kSavepointPrefix.size() - kSavepointSuffix.size()));
  // Each step has one name. Otherwise two files could claim to be the same savepoint.
  return step && *step >= 0 && savepoint_name(*step) == name ? step : std::nullopt;
}

std::vector<SavepointEntry> list_savepoints(FileSystem& files, const std::string& folder) {
  std::vector<SavepointEntry> entries;
  if (!files.exists(folder)) return entries;
  for (const std::string& name : files.list(folder)) {
    const std::optional<std::int64_t> step = savepoint_step(name);
    if (!step) continue;
    try {
      const std::uint64_t bytes = files.open_for_reading(path_in_folder(folder, name))->size_bytes();
      entries.push_back({.name = name, .step = *step, .file_bytes = bytes});
    } catch (const Error& failure) {
      // Only a regular file can be a savepoint. Anything else is set aside at the next start of the run.
      const bool is_none = failure.code() == ErrorCode::not_found || failure.code() == ErrorCode::invalid_file;
      if (!is_none) throw;
    }
  }
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.step < b.step; });
  return entries;
}

// A savepoint that lacks the metric is never the best one. That is not an error.
std::optional<double> metric_of(std::string_view metadata_json, const std::string& name) {
  // Without exceptions: the metadata may be any JSON, since its meaning is up to the writer.
  const auto metadata = nlohmann::json::parse(metadata_json, nullptr, false);
  if (!metadata.is_object()) return std::nullopt;
  const auto metrics = metadata.find("metrics");
  if (metrics == metadata.end() || !metrics->is_object()) return std::nullopt;
  const auto value = metrics->find(name);
  if (value == metrics->end() || !value->is_number()) return std::nullopt;
  return value->get<double>();
}

Digest verify_savepoint(FileSystem& files, const std::string& path, const ReadOptions& options) {
  const ArrayFile file = ArrayFile::open(files, path, options);
  file.verify();
  return file.file_digest();
}

std::string set_aside(FileSystem& files, const std::string& path, const std::string& why) {
  std::string target = fmt::format("{}{}", path, kDamagedSuffix);
  for (int number = 2; files.exists(target); ++number) target = fmt::format("{}{}-{}", path, kDamagedSuffix, number);
  // The rename comes first. If the explanation cannot be written, the file is out of the way nevertheless.
  files.rename(path, target);
  files.sync_folder(parent_folder(path));
  write_whole_file(files, target + ".txt", std::as_bytes(std::span(std::string(why).append("\n"))));
  return target;
}

namespace {

struct Candidate {
  std::int64_t step;
  std::size_t folder;
  std::string path;
};

// One search: what it may do, and what it has met so far.
class Search {
 public:
  Search(FileSystem& files, std::span<const std::string> folders,
         const std::function<void(const std::string& path)>& read, const FindOptions& options)
      : files_(files), folders_(folders), read_(read), options_(options) {}

  std::optional<std::string> run() {
    if (options_.is_owner) remove_leftovers();
    // A file that is deleted between listing and reading starts the search again.
    for (listings_left_ = kListings;; --listings_left_) {
      has_changed_ = false;
      unreadable_.reset();
      waiting_.clear();
      const std::optional<std::string> found = try_all(list());
      if (found || !has_changed_) return found;
    }
  }

 private:
  void report(const Problem& problem) const {
    if (options_.report) options_.report(problem);
  }

  // Only the owner of the folders may do this: another process may be writing such a file.
  void remove_leftovers() {
    for (const std::string& folder : folders_) {
      try {
        if (files_.exists(folder)) remove_temporary_files(files_, folder);
      } catch (const Error& failure) {
        report({.path = folder, .why = failure.what()});
      }
    }
  }

  std::vector<Candidate> list() {
    std::vector<Candidate> candidates;
    std::optional<Error> failure;
    std::size_t listed = 0;
    for (std::size_t folder = 0; folder < folders_.size(); ++folder) {
      try {
        append(folder, candidates);
        ++listed;
      } catch (const Error& error) {
        if (!failure) failure = error;
        if (listings_left_ == kListings) report({.path = folders_[folder], .why = error.what()});
      }
    }
    // One folder that can be listed is enough, since each may contain all savepoints.
    if (failure && listed == 0) throw *failure;
    std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
      return std::pair(-a.step, a.folder) < std::pair(-b.step, b.folder);
    });
    return candidates;
  }

  // Does not open the files: try_all() finds out which of them can be read.
  void append(std::size_t folder, std::vector<Candidate>& candidates) {
    if (!files_.exists(folders_[folder])) return;
    for (const std::string& name : files_.list(folders_[folder])) {
      const std::optional<std::int64_t> step = savepoint_step(name);
      if (step) candidates.push_back({*step, folder, path_in_folder(folders_[folder], name)});
    }
  }

  std::optional<std::string> try_all(const std::vector<Candidate>& candidates) {
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      if (is_readable(candidates[i].path)) {
        // Files that could not be read are passed over only because this copy could be read.
        for (const Problem& problem : waiting_) report(problem);
        return candidates[i].path;
      }
      if (has_changed_) return std::nullopt;
      const bool is_last_copy = i + 1 == candidates.size() || candidates[i + 1].step != candidates[i].step;
      // All copies of this step were tried, and at least one may be whole on a disk that fails.
      if (is_last_copy && unreadable_) throw Error(*unreadable_);
    }
    return std::nullopt;
  }

  // The caller reads the file itself, so whatever it needs from the file is part of the test.
  bool is_readable(const std::string& path) {
    try {
      read_(path);
      return true;
    } catch (const Error& failure) {
      meet(path, failure);
      return false;
    }
  }

  void meet(const std::string& path, const Error& failure) {
    switch (failure.code()) {
      case ErrorCode::invalid_file:
        pass_over(path, failure.what());
        return;
      case ErrorCode::not_found:
        // A file that is listed and never exists is passed over in the end.
        has_changed_ = listings_left_ > 0;
        return;
      case ErrorCode::input_output:
      case ErrorCode::refused:
        if (!unreadable_) unreadable_ = failure;
        waiting_.push_back({.path = path, .why = failure.what()});
        return;
      default:
        throw;  // the exception that is being handled, with the type that the reader threw
    }
  }

  void pass_over(const std::string& path, const std::string& why) {
    Problem problem{.path = path, .why = why};
    try {
      if (options_.is_owner) problem.set_aside_as = set_aside(files_, path, why);
    } catch (const Error& failure) {
      problem.why += fmt::format("; it could not be set aside: {}", failure.what());
    }
    report(problem);
  }

  FileSystem& files_;
  std::span<const std::string> folders_;
  const std::function<void(const std::string& path)>& read_;
  const FindOptions& options_;
  int listings_left_ = kListings;
  bool has_changed_ = false;         // a file was deleted since the folders were listed
  std::optional<Error> unreadable_;  // the first such error of the step that is tried
  std::vector<Problem> waiting_;     // all of them, to be reported when a copy is taken
};

}  // namespace

std::optional<std::string> find_newest_savepoint(FileSystem& files, std::span<const std::string> folders,
                                                 const std::function<void(const std::string& path)>& read,
                                                 const FindOptions& options) {
  return Search(files, folders, read, options).run();
}

}  // namespace holdfast::format
