#pragma once

// The JSON with which classes of an application describe themselves.

#include <nlohmann/json.hpp>
#include <string>
#include <typeinfo>

namespace holdfast {

// "the loss "my_loss" (class MyLoss)".
std::string name_of_class(const std::string& role, const std::string& name, const std::type_info& type);

[[noreturn]] void refuse_clone(const std::string& original, const std::string& clone);

// Throws Error{invalid_argument} if the clone() of a loss, metric or optimizer gave an object of another class. A class
// that inherits clone() would be trained as its base, and nothing would show it.
template <class Part>
void require_own_clone(const std::string& role, const Part& original, const Part& clone) {
  if (typeid(original) == typeid(clone)) return;
  refuse_clone(name_of_class(role, original.name(), typeid(original)),
               name_of_class(role, clone.name(), typeid(clone)));
}

// Parses `text`, which `function` of `whose` returned. Throws Error{invalid_argument} if it is not JSON; the sentence
// says what was returned, and where it goes wrong.
nlohmann::json json_given_by(const std::string& whose, const std::string& function, const std::string& text);

}  // namespace holdfast
