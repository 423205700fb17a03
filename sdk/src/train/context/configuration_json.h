#pragma once

// The JSON with which classes of an application describe themselves.

#include <nlohmann/json.hpp>
#include <string>
#include <typeinfo>

namespace holdfast {

// "the loss "my_loss" (class MyLoss)".
std::string name_of_class(const std::string& role, const std::string& name, const std::type_info& type);

// Parses `text`, which `function` of `whose` returned. Throws Error{invalid_argument} if it is not JSON; the sentence
// says what was returned, and where it goes wrong.
nlohmann::json json_given_by(const std::string& whose, const std::string& function, const std::string& text);

}  // namespace holdfast
