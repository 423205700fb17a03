#include "option_checks.h"

#include <cmath>

#include "text.h"

namespace holdfast::cli {

CLI::Validator at_least(double lowest) {
  return CLI::Validator(
      [lowest](std::string& text) -> std::string {
        double number = 0;
        if (CLI::detail::lexical_cast(text, number) && std::isfinite(number) && number >= lowest) return "";
        return text + " is no number from " + describe_number(lowest) + " on";
      },
      "");
}

CLI::Validator whole_from(std::int64_t lowest) {
  return CLI::Validator(
      [lowest](std::string& text) -> std::string {
        std::int64_t number = 0;
        if (CLI::detail::lexical_cast(text, number) && number >= lowest) return "";
        return text + " is no whole number from " + std::to_string(lowest) + " on";
      },
      "");
}

}  // namespace holdfast::cli
