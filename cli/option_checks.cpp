// CLI11's own checks accept "nan" and "inf" for numbers, and a minus sign before a size. These validators refuse what
// no option here means, in sentences of ours.

#include "option_checks.h"

#include <fmt/format.h>

#include <cmath>

namespace holdfast::cli {

namespace {

// Accepts text that is a `Number` for which `is_right` holds. Says of other text that it is not `what`. The validator
// has no description: CLI11 would append it to the option's name in --help.
template <typename Number, typename IsRight>
CLI::Validator accepting(const IsRight& is_right, const std::string& what) {
  return CLI::Validator(
      [is_right, what](std::string& text) -> std::string {
        Number number = 0;
        if (CLI::detail::lexical_cast(text, number) && is_right(number)) return "";
        return fmt::format("{} is not {}", text, what);
      },
      "");
}

}  // namespace

CLI::Validator at_least(double lowest) {
  // CLI11 takes "nan" and "inf" for numbers, which no option here means.
  return accepting<double>([lowest](double number) { return std::isfinite(number) && number >= lowest; },
                           fmt::format("a number of at least {}", describe_number(lowest)));
}

CLI::Validator between(double lowest, double highest) {
  // NaN fails both comparisons.
  return accepting<double>([lowest, highest](double number) { return number >= lowest && number <= highest; },
                           fmt::format("a number from {} to {}", describe_number(lowest), describe_number(highest)));
}

CLI::Validator whole_from(std::int64_t lowest) {
  return accepting<std::int64_t>([lowest](std::int64_t number) { return number >= lowest; },
                                 fmt::format("a whole number of at least {}", lowest));
}

CLI::Validator size_in_bytes() {
  return CLI::Validator(
      [](std::string& text) -> std::string {
        if (text.starts_with('-')) return fmt::format("{} is not a size such as 10MB or 2GiB", text);
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
