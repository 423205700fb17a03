#include "option_checks.h"

#include <fmt/format.h>

#include <cmath>

namespace holdfast::cli {

// The validators have no description: CLI11 would append it to the option's name in --help.
CLI::Validator at_least(double lowest) {
  return CLI::Validator(
      [lowest](std::string& text) -> std::string {
        double number = 0;
        // The cast accepts "nan" and "inf", which no option here means.
        if (CLI::detail::lexical_cast(text, number) && std::isfinite(number) && number >= lowest) return "";
        return fmt::format("{} is not a number of at least {}", text, describe_number(lowest));
      },
      "");
}

CLI::Validator between(double lowest, double highest) {
  return CLI::Validator(
      [lowest, highest](std::string& text) -> std::string {
        double number = 0;
        // NaN fails both comparisons.
        if (CLI::detail::lexical_cast(text, number) && number >= lowest && number <= highest) return "";
        return fmt::format("{} is not a number from {} to {}", text, describe_number(lowest), describe_number(highest));
      },
      "");
}

CLI::Validator whole_from(std::int64_t lowest) {
  return CLI::Validator(
      [lowest](std::string& text) -> std::string {
        std::int64_t number = 0;
        if (CLI::detail::lexical_cast(text, number) && number >= lowest) return "";
        return fmt::format("{} is not a whole number of at least {}", text, lowest);
      },
      "");
}

CLI::Validator size_in_bytes() {
  return CLI::Validator(
      [](std::string& text) -> std::string {
        if (text.starts_with('-')) return text + " is not a size such as 10MB or 2GiB";
        const CLI::Validator as_size = CLI::AsSizeValue(false);
        return as_size(text);
      },
      "");
}

void add_max_memory(CLI::App& command, std::uint64_t& bytes) {
  command
      .add_option("--max-memory", bytes,
                  "The most memory to use for another program's HDF5 file, such as 16GiB (default: 4GiB)")
      ->transform(size_in_bytes())
      ->type_name("SIZE");
}

}  // namespace holdfast::cli
