#include "support/folders.h"

namespace holdfast {

std::string source_folder() {
  return HOLDFAST_SOURCE_DIR;
}

std::string program_folder() {
  return HOLDFAST_BINARY_DIR;
}

}  // namespace holdfast
