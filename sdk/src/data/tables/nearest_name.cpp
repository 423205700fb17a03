#include "data/tables/nearest_name.h"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <vector>

namespace holdfast {
namespace {

// Names of columns may be as long as a field, and the distance takes the product of both lengths.
constexpr std::size_t kCompared = 200;

// Another case is half a mistake. So "Price" is nearer to "price" than "prize" is.
std::size_t cost_of_replacing(char a, char b) {
  if (a == b) return 0;
  const auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  return lower(a) == lower(b) ? 1 : 2;
}

// In half letters (V. I. Levenshtein, "Binary codes capable of correcting deletions, insertions, and reversals", 1966).
std::size_t letter_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);  // the distances of a prefix of a from all prefixes of b
  for (std::size_t j = 0; j < row.size(); ++j) row[j] = 2 * j;
  for (const char letter : a) {
    // One row is enough: a cell needs its left and upper neighbours, and the one between them, which `diagonal` keeps
    // after it was overwritten.
    std::size_t diagonal = row[0];
    row[0] += 2;
    for (std::size_t j = 1; j < row.size(); ++j) {
      const std::size_t replaced = diagonal + cost_of_replacing(letter, b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 2, row[j - 1] + 2, replaced});
    }
  }
  return row.back();
}

}  // namespace

std::string nearest_name(std::string_view asked, std::span<const std::string> names) {
  const std::string* nearest = nullptr;
  std::size_t least = 0;
  for (const std::string& name : names) {
    const std::size_t found = letter_distance(asked.substr(0, kCompared), std::string_view(name).substr(0, kCompared));
    // The first of several equals stays, so the message does not depend on anything but the names.
    if (nearest != nullptr && found >= least) continue;
    nearest = &name;
    least = found;
  }
  return nearest == nullptr ? std::string() : *nearest;
}

}  // namespace holdfast
