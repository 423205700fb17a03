// Texts lie in the metadata, and not in arrays of their own: a savepoint's arrays are f32 and compared by name with the
// model, and metadata has a digest already. docs/format.md

#include "train/state/attached_texts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/json_text.h"
#include "holdfast/base/error.h"
#include "holdfast/base/file_system.h"
#include "holdfast/base/shown_text.h"
#include "holdfast/base/utf8.h"
#include "holdfast/train/attached_texts.h"
#include "train/state/snapshot.h"

namespace holdfast {
namespace {

// Texts are a part of each savepoint and of the state that replicas send each other. Both limits keep them small.
constexpr std::size_t kMostNameBytes = 200;
constexpr std::size_t kMostAttachedBytes = std::size_t{16} << 20;

[[noreturn]] void refuse_attached(const std::string& name, const std::string& reason) {
  throw Error(ErrorCode::invalid_argument, fmt::format("attach({}): {}", quoted_text(name), reason));
}

void check_utf8(const std::string& name, const std::string& text) {
  if (!is_utf8(text)) {
    refuse_attached(name, "the text is not UTF-8; write bytes as hexadecimal digits or in base 64");
  }
}

}  // namespace

std::string text_of_list(const std::string& name, const std::vector<std::string>& texts) {
  // Before dump(), which would throw an exception of the library that does not say which text it was.
  for (const std::string& text : texts) check_utf8(name, text);
  return nlohmann::json(texts).dump();
}

void check_attached(const std::map<std::string, std::string>& there, const std::string& name, const std::string& text) {
  // Names are shown in messages and by `holdfast inspect`, where a control character could pass for something else.
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (name.empty() || name.size() > kMostNameBytes || std::ranges::any_of(name, is_control) || !is_utf8(name)) {
    refuse_attached(name, fmt::format("a name has 1 to {} bytes of UTF-8 without control characters", kMostNameBytes));
  }
  check_utf8(name, text);
  std::size_t bytes = name.size() + text.size();
  // A text of this name would be replaced, so it is not counted.
  for (const auto& [other, other_text] : there) {
    if (other != name) bytes += other.size() + other_text.size();
  }
  if (bytes <= kMostAttachedBytes) return;
  refuse_attached(name, fmt::format("all texts of a model together would have {} bytes, and {} are allowed, since each "
                                    "savepoint holds them; keep large tables in files of their own",
                                    bytes, kMostAttachedBytes));
}

// A file that was made without texts has no such key, and is not damaged.
std::map<std::string, std::string> attached_from(const nlohmann::json& metadata) {
  const auto found = metadata.find(kAttachedKey);
  if (found == metadata.end()) return {};
  const bool are_texts =
      found->is_object() && std::ranges::all_of(*found, [](const auto& text) { return text.is_string(); });
  if (!are_texts) throw Error(ErrorCode::invalid_file, "its attached texts are not an object of texts");
  return found->get<std::map<std::string, std::string>>();
}

// Maps are in the order of the names, so each rank gives the same sentences in the same order.
void describe_attached_differences(const std::map<std::string, std::string>& saved,
                                   const std::map<std::string, std::string>& now, std::vector<std::string>& sentences) {
  for (const auto& [name, text] : saved) {
    const auto other = now.find(name);
    if (other == now.end()) {
      sentences.push_back(fmt::format("the text {} was attached and is not", quoted_text(name)));
    } else if (other->second != text) {
      sentences.push_back(fmt::format("the attached text {} is another one", quoted_text(name)));
    }
  }
  for (const auto& [name, text] : now) {
    if (!saved.contains(name))
      sentences.push_back(fmt::format("the text {} was not attached and is", quoted_text(name)));
  }
}

std::map<std::string, std::string> attached_texts(const std::string& path) {
  const std::string text = read_metadata(posix_file_system(), path);
  // Any array file may be given, so metadata of another kind has no texts and is not an error.
  const nlohmann::json metadata = is_deep_json(text) ? nlohmann::json() : nlohmann::json::parse(text, nullptr, false);
  if (!metadata.is_object()) return {};
  try {
    return attached_from(metadata);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("the metadata of {} cannot be read: {}", quoted_path(path), error.what()));
  }
}

std::string attached_text(const std::string& path, const std::string& name) {
  std::map<std::string, std::string> all = attached_texts(path);
  const auto found = all.find(name);
  if (found != all.end()) return std::move(found->second);
  std::vector<std::string> names;
  for (const auto& [other, text] : all) names.push_back(quoted_text(other));
  throw Error(ErrorCode::not_found,
              fmt::format("{} has no text {}; it has {}. Trainer::attach() adds one", quoted_path(path),
                          quoted_text(name), names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))));
}

std::vector<std::string> attached_list(const std::string& path, const std::string& name) {
  // The JSON library copies by recursion, so a text that is nested too deeply is not parsed.
  const std::string text = attached_text(path, name);
  const nlohmann::json list = is_deep_json(text) ? nlohmann::json() : nlohmann::json::parse(text, nullptr, false);
  if (list.is_array() && std::ranges::all_of(list, [](const auto& each) { return each.is_string(); })) return list;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("the text {} of {} is not a list of Trainer::attach_list(); read it by attached_text()",
                          quoted_text(name), quoted_path(path)));
}

}  // namespace holdfast
