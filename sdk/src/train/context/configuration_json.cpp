// An application's own classes describe themselves in JSON, since a resume compares descriptions. A mistake in one is
// the user's, so the sentence shows what was returned and where it is wrong.

#include "train/context/configuration_json.h"

#include <fmt/format.h>

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

#include "core/json_text.h"
#include "holdfast/base/error.h"

namespace holdfast {

std::string name_of_class(const std::string& role, const std::string& name, const std::type_info& type) {
  int status = 0;
  // The compiler's name of a type says little to a user.
  const std::unique_ptr<char, void (*)(void*)> readable(abi::__cxa_demangle(type.name(), nullptr, nullptr, &status),
                                                        std::free);
  return fmt::format("the {}{} (class {})", role, name.empty() ? "" : " " + json_string(name),
                     readable ? readable.get() : type.name());
}

void refuse_clone(const std::string& original, const std::string& clone) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("clone() of {} gave {}; a class of your own must override clone()", original, clone));
}

nlohmann::json json_given_by(const std::string& whose, const std::string& function, const std::string& text) {
  std::size_t position = 0;
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& failure) {
    // The library's own text speaks of its grammar, and is of little help to a user.
    position = failure.byte;
  }
  constexpr std::size_t kShown = 120;
  const std::string given = json_string(text.substr(0, kShown)) + (text.size() > kShown ? "..." : "");
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("{} of {} must return JSON, but returns {}; return an object with the kind and every option that the "
                  "bits depend on, with names and texts in double quotes: {}",
                  function, whose,
                  text.empty() ? "an empty text" : fmt::format("{}, which is wrong at character {}", given, position),
                  R"({"kind":"mine","scale":0.5})"));
}

}  // namespace holdfast
