#include "container/names.h"

#include "holdfast/base/utf8.h"

namespace holdfast::format {
namespace {

// HDF5 gives "." a meaning of its own, and other programs turn names into paths of files.
bool is_valid_part(std::string_view part) {
  return !part.empty() && part != "." && part != "..";
}

}  // namespace

// The length is checked first, because the other checks take time in proportion to it.
bool is_valid_name(std::string_view name) {
  if (name.size() > kMaxNameBytes || !is_utf8(name)) return false;
  std::size_t parts = 1;
  for (std::size_t slash = name.find('/'); slash != std::string_view::npos; slash = name.find('/'), ++parts) {
    if (!is_valid_part(name.substr(0, slash))) return false;
    name.remove_prefix(slash + 1);
  }
  return is_valid_part(name) && parts <= kMaxNameParts;
}

}  // namespace holdfast::format
