// The format of Python's str.format() is that of fmt, as far as numbers are concerned. What is wrong with a pattern is
// found by trying it with small numbers, where the callback is made and not after an epoch of training.

#include "callbacks/file_name_pattern.h"

#include <fmt/args.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "holdfast/base/error.h"

namespace holdfast {
namespace {

// Names that are always known. All others must be among the logs when a file is named.
constexpr std::array kPositionNames{"epoch", "batch", "step"};

[[noreturn]] void refuse_pattern(const std::string& pattern, const std::string& why) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("ModelCheckpoint cannot name files \"{}\": {}; write one such as "
                          "\"{{epoch:02d}}-{{val_loss:.2f}}.h5\"",
                          pattern, why));
}

// A value in a pattern: "{name:format}".
struct Place {
  std::string name;
  std::string format{};  // empty: that of the value's type
};

// All of them, except where "{{" means a brace.
std::vector<Place> places_in(const std::string& pattern) {
  std::vector<Place> places;
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    if (pattern[at] != '{') continue;
    if (at + 1 < pattern.size() && pattern[at + 1] == '{') {
      ++at;
      continue;
    }
    const std::size_t name_end = pattern.find_first_of(":}", at);
    const std::size_t end = pattern.find('}', at);
    // fmt itself refuses a brace that stays open, when the pattern is tried.
    if (end == std::string::npos) break;
    Place place{.name = pattern.substr(at + 1, name_end - at - 1)};
    if (name_end < end) place.format = pattern.substr(name_end + 1, end - name_end - 1);
    places.push_back(std::move(place));
    at = end;
  }
  return places;
}

// Trying the pattern cannot find these: what they make of one number does not show what they make of another.
void refuse_formats_without_digits(const std::string& pattern, const Place& place) {
  // The type is the last letter of a format, and a letter for filling is never the last.
  if (place.format.ends_with('c')) {
    refuse_pattern(pattern, fmt::format("\"{{{}:{}}}\" makes a letter of a number, and that of 47 is a slash",
                                        place.name, place.format));
  }
  if (place.format.find('{') != std::string::npos) {
    refuse_pattern(pattern, fmt::format("the format of \"{}\" takes its width or precision from another value, and "
                                        "names would grow with that",
                                        place.name));
  }
}

}  // namespace

FileNamePattern::FileNamePattern(std::string pattern) : pattern_(std::move(pattern)) {
  Logs zeros, negatives;
  for (const Place& place : places_in(pattern_)) {
    refuse_formats_without_digits(pattern_, place);
    if (std::ranges::find(kPositionNames, place.name) != kPositionNames.end()) continue;
    if (place.name.empty()) refuse_pattern(pattern_, "a value in it has no name");
    if (zeros.emplace(place.name, 0).second) logged_names_.push_back(place.name);
    negatives.emplace(place.name, -1);
  }
  // A value is put in as a double, as later, so a format that fits no number is found here.
  for (const Logs& logs : {zeros, negatives}) {
    const std::string tried = filled({}, logs);
    if (tried.find('/') != std::string::npos) refuse_pattern(pattern_, "it has a slash, and files stay in one folder");
    if (!tried.ends_with(".h5")) refuse_pattern(pattern_, "the name does not end in .h5, as files in this format do");
    // No value has the letters of that word, but a negative one has its dash. Other numbers make no such name.
    if (tried.starts_with("savepoint-")) refuse_pattern(pattern_, "runs go on from files called savepoint-...");
  }
}

std::string FileNamePattern::at(const TrainingContext& context, const Logs& logs) const {
  for (const std::string& name : logged_names_) {
    if (!logs.contains(name)) refuse_pattern(pattern_, fmt::format("the logs have no \"{}\" at this moment", name));
  }
  return filled({.epoch = context.epoch() + 1, .batch = context.batch_in_epoch(), .step = context.step()}, logs);
}

std::string FileNamePattern::filled(const Position& position, const Logs& logs) const {
  fmt::dynamic_format_arg_store<fmt::format_context> values;
  values.push_back(fmt::arg("epoch", position.epoch));
  values.push_back(fmt::arg("batch", position.batch));
  values.push_back(fmt::arg("step", position.step));
  for (const std::string& name : logged_names_) values.push_back(fmt::arg(name.c_str(), logs.at(name)));
  try {
    return fmt::vformat(pattern_, values);
  } catch (const fmt::format_error& failure) {
    refuse_pattern(pattern_, fmt::format("it is not a format of numbers ({})", failure.what()));
  }
}

}  // namespace holdfast
