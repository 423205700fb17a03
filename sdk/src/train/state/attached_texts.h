#pragma once

// The texts of holdfast/train/attached_texts.h within the metadata of a file.

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace holdfast {

inline constexpr const char* kAttachedKey = "attached";

// Throws Error{invalid_argument} for a name or text that cannot be kept: a name that is empty, longer than 200 bytes or
// has control characters, bytes that are not UTF-8, and more than 16 MiB with the texts that are there.
void check_attached(const std::map<std::string, std::string>& there, const std::string& name, const std::string& text);

// The text of a list of texts. Throws Error{invalid_argument} for bytes that are not UTF-8.
std::string text_of_list(const std::string& name, const std::vector<std::string>& texts);

// The member kAttachedKey of `metadata`; empty without it. Throws Error{invalid_file} unless it is an object of texts.
std::map<std::string, std::string> attached_from(const nlohmann::json& metadata);

// A sentence for each name whose text differs. Texts may be long, so they are not quoted.
void describe_attached_differences(const std::map<std::string, std::string>& saved,
                                   const std::map<std::string, std::string>& now, std::vector<std::string>& sentences);

}  // namespace holdfast
