#pragma once

// The secret that all hosts of a run share: 32 bytes, in a file that others cannot read. Without one nothing listens.

#include <array>
#include <cstddef>
#include <string>

namespace holdfast::recovery {

struct Secret {
  std::array<unsigned char, 32> bytes{};
};

// The file holds the 32 bytes, or 64 hexadecimal digits. Throws Error that says how to make one where it is missing,
// has another size, or may be read by others: group or others, except that a file of root may be read by its group, as
// Kubernetes mounts it.
Secret read_secret(const std::string& path);

}  // namespace holdfast::recovery
