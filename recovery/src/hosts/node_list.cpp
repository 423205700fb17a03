// Slurm writes lists as people do: numbers in brackets, with zeros in front where names have them. The program that
// expands them, scontrol, may be missing in a container, so they are read here. docs/decisions/launchers.md

#include "hosts/node_list.h"

#include <cctype>
#include <cstdint>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "holdfast/base/error.h"
#include "holdfast/base/whole_number.h"

namespace holdfast::recovery {
namespace {

// Numbers of nodes are short. A longer one would not fit its type.
constexpr std::size_t kMostDigits = 9;

bool is_digit(char character) {
  return std::isdigit(static_cast<unsigned char>(character)) != 0;
}

// A host's name has these characters.
bool is_of_a_name(char character) {
  return std::isalnum(static_cast<unsigned char>(character)) != 0 || character == '-' || character == '.' ||
         character == '_';
}

// Reads one list from left to right. Names grow part by part: "a[1-2]b[1-2]" has four.
class NodeList {
 public:
  explicit NodeList(std::string_view text) : text_(text) {}

  std::vector<std::string> read() {
    std::vector<std::string> all;
    do {
      for (std::string& name : names()) all.push_back(std::move(name));
      check_count(all.size());
    } while (takes(','));
    if (at_ < text_.size()) refuse("there is a character that no name has");
    return all;
  }

 private:
  std::vector<std::string> names() {
    std::vector<std::string> names{""};
    const std::size_t first = at_;
    while (at_ < text_.size() && text_[at_] != ',') {
      if (takes('[')) {
        names = with_each(names, numbers());
      } else if (is_of_a_name(text_[at_])) {
        for (std::string& name : names) name += text_[at_];
        ++at_;
      } else {
        refuse("there is a character that no name has");
      }
    }
    if (at_ == first) refuse("a name is empty");
    return names;
  }

  // What stands between brackets, such as "1-3,07".
  std::vector<std::string> numbers() {
    std::vector<std::string> all;
    do {
      const std::string_view low = digits();
      const std::string_view high = takes('-') ? digits() : low;
      // No number has more digits than fit, so both are there.
      const auto first = *whole_number<std::uint32_t>(low);
      const auto last = *whole_number<std::uint32_t>(high);
      if (last < first) refuse("a range ends before it begins");
      check_count(all.size() + (last - first) + 1);
      // The first number says how wide all are: 08-11 is 08, 09, 10, 11.
      for (std::uint32_t number = first; number <= last; ++number) {
        all.push_back(fmt::format("{:0{}}", number, low.size()));
      }
    } while (takes(','));
    if (!takes(']')) refuse("a bracket is not closed");
    return all;
  }

  std::string_view digits() {
    const std::size_t first = at_;
    while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
    if (at_ == first || at_ - first > kMostDigits) refuse("there is no number where one is expected");
    return text_.substr(first, at_ - first);
  }

  std::vector<std::string> with_each(const std::vector<std::string>& names, const std::vector<std::string>& numbers) {
    // Both counts are within the limit themselves, so their product does not overflow.
    check_count(names.size() * numbers.size());
    std::vector<std::string> longer;
    for (const std::string& name : names) {
      for (const std::string& number : numbers) longer.push_back(name + number);
    }
    return longer;
  }

  bool takes(char character) {
    const bool is_there = at_ < text_.size() && text_[at_] == character;
    if (is_there) ++at_;
    return is_there;
  }

  // Before the names are made: a short text can stand for very many.
  void check_count(std::size_t count) const {
    if (count > kMostHosts) refuse(fmt::format("it has more than {} names", kMostHosts));
  }

  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("\"{}\" is not a list of nodes: {}, at character {}", text_, what, at_ + 1));
  }

  const std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::vector<std::string> nodes_of(std::string_view list) {
  return NodeList(list).read();
}

}  // namespace holdfast::recovery
