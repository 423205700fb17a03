// These rules hold for what is read and what is written. A name must be safe as a part of a path, in JSON and in a
// terminal, since it reaches all three.

#include "foreign_hdf5/tree_names.h"

#include <fmt/format.h>

#include <algorithm>

#include "foreign_hdf5/tree.h"
#include "holdfast/base/utf8.h"

namespace holdfast::format {

std::string problem_of_name(std::string_view name) {
  if (name.empty() || name == "." || name == "..") return "has a part that is empty, \".\" or \"..\"";
  if (name.find('/') != std::string_view::npos) return "has a part that contains '/'";
  return is_utf8(name) ? "" : "is not UTF-8 text";
}

std::string problem_of_path(std::string_view path) {
  if (path.size() > kMaxTreePathBytes) return fmt::format("is longer than {} bytes", kMaxTreePathBytes);
  // Paths of honest files are far shorter. The limit bounds what other code does for each part.
  for (std::size_t parts = 1;; ++parts) {
    if (parts > kMaxTreePathParts) return fmt::format("lies in more than {} groups", kMaxTreePathParts - 1);
    const std::size_t slash = path.find('/');
    const std::string problem = problem_of_name(path.substr(0, slash));
    if (!problem.empty() || slash == std::string_view::npos) return problem;
    path.remove_prefix(slash + 1);
  }
}

std::string problem_of_link(const std::string& path, const std::string& name, bool is_hard) {
  std::string problem = problem_of_name(name);
  // A soft or external link may point anywhere, and its name says nothing about the object.
  if (problem.empty() && !is_hard) return " is a soft, external or user-defined link, which may point anywhere";
  if (problem.empty()) problem = problem_of_path(path);
  return problem.empty() ? "" : " " + problem;
}

std::string printable(std::string text) {
  if (text.size() > kMaxPrintableBytes) {
    std::size_t end = kMaxPrintableBytes;
    while (end > 0 && (text[end] & 0xC0) == 0x80) --end;  // never cuts a character
    text.resize(end);
  }
  if (!is_utf8(text)) {
    std::replace_if(
        text.begin(), text.end(), [](char c) { return (c & 0x80) != 0; }, '?');
  }
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }, '?');
  // U+0080 to U+009F are control characters, too.
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    if (text[i] == '\xC2' && static_cast<unsigned char>(text[i + 1]) < 0xA0) text[i] = text[i + 1] = '?';
  }
  return text;
}

}  // namespace holdfast::format
