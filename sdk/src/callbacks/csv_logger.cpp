// The file is a function of the epochs that the training state knows, so it needs no state of its own:
// it is compared with the text that it should hold, and extended or rewritten. So it does not matter
// which rank wrote before, or what a kill left of a line. See docs/decisions/records.md.

#include "holdfast/observe/csv_logger.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <optional>
#include <set>
#include <string_view>

#include "holdfast/base/error.h"
#include "holdfast/base/file_system.h"
#include "holdfast/base/shown_text.h"
#include "holdfast/base/whole_file.h"

namespace holdfast {
namespace {

// The shortest decimal that reads back as the same double, like repr() of Python.
std::string number(double value) {
  std::array<char, 32> text;
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}

// Quotes a field as RFC 4180 prescribes.
std::string field(const std::string& text, char separator) {
  if (text.find_first_of(std::string("\"\r\n") + separator) == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char letter : text) quoted += letter == '"' ? "\"\"" : std::string(1, letter);
  return quoted + "\"";
}

struct NumberedLogs {
  std::size_t number = 0;
  const Logs& logs;
};

void add_epochs(const std::vector<Logs>& epochs, std::vector<NumberedLogs>& all) {
  for (std::size_t epoch = 0; epoch < epochs.size(); ++epoch) all.push_back({epoch, epochs[epoch]});
}

// All lines have the columns of all epochs. So a metric that begins in a later epoch changes the
// header, and the file is rewritten.
std::string csv(const std::vector<NumberedLogs>& epochs, char separator) {
  if (epochs.empty()) return "";
  std::set<std::string> names;
  for (const NumberedLogs& epoch : epochs) {
    for (const auto& [name, value] : epoch.logs) names.insert(name);
  }
  std::string text = "epoch";
  for (const std::string& name : names) text += separator + field(name, separator);
  text += "\n";
  for (const NumberedLogs& epoch : epochs) {
    text += std::to_string(epoch.number);
    for (const std::string& name : names) {
      const auto value = epoch.logs.find(name);
      text += separator + (value == epoch.logs.end() ? "NA" : number(value->second));
    }
    text += "\n";
  }
  return text;
}

// Replaces the file in one step, or appends what is missing. Either way its whole lines are right
// whenever a kill cuts the write off.
void bring_to(FileSystem& files, const std::string& path, std::string_view text) {
  const std::optional<std::string> found =
      files.exists(path) ? std::optional(read_text_file(files, path)) : std::nullopt;
  if (found == text) return;
  if (!found || !text.starts_with(*found)) return write_whole_file(files, path, std::as_bytes(std::span(text)));
  const auto file = files.open_for_writing(path);
  file->write_at(found->size(), std::as_bytes(std::span(text.substr(found->size()))));
  file->sync();
}

}  // namespace

CSVLogger::CSVLogger(CSVLoggerOptions options) : options_(std::move(options)) {
  // A separator that numbers contain would split them.
  const char separator = options_.separator;
  // "1e-05", "nan", "inf" and "NA" have letters.
  const bool is_letter = (separator >= 'a' && separator <= 'z') || (separator >= 'A' && separator <= 'Z');
  const bool is_of_numbers = std::string_view("+-.0123456789").find(separator) != std::string_view::npos;
  if (is_letter || is_of_numbers || std::string_view("\"\r\n\0", 4).find(separator) != std::string_view::npos) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("CSVLogger cannot separate columns by {}; use a comma or a tab",
                            quoted_text(std::string_view(&separator, 1))));
  }
}

void CSVLogger::write(const TrainingContext& context, const std::vector<Logs>& epochs) {
  const std::string path = path_in_run(context, options_.path, "log.csv", "CSVLogger");
  context.file_system().create_folders(parent_folder(path));
  std::vector<std::vector<Logs>> earlier;
  if (options_.append) earlier = context.earlier_histories();
  std::vector<NumberedLogs> all;
  for (const std::vector<Logs>& call : earlier) add_epochs(call, all);
  add_epochs(epochs, all);
  bring_to(context.file_system(), path, csv(all, options_.separator));
}

}  // namespace holdfast
