#pragma once

// The JSON that classes of an application describe themselves by.

#include <nlohmann/json.hpp>
#include <string>
#include <typeinfo>

namespace holdfast {

// "the loss my_loss (class MyLoss)"
std::string name_of_class(const std::string& role, const std::string& name, const std::type_info& type);

// Throws Error{invalid_argument} saying whose `function` gave no JSON, what it gave, and where that goes wrong.
nlohmann::json json_given_by(const std::string& whose, const std::string& function, const std::string& text);

}  // namespace holdfast
