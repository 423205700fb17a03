#include "holdfast/recovery/environment_faults.h"

#include <cstdlib>
#include <sstream>

namespace holdfast::recovery {

std::vector<std::string> faults_of_environment() {
  std::vector<std::string> faults;
  const char* text = std::getenv(kFaultsVariable);
  std::istringstream rest(text == nullptr ? "" : text);
  for (std::string fault; std::getline(rest, fault, ';');) {
    if (!fault.empty()) faults.push_back(fault);
  }
  return faults;
}

}  // namespace holdfast::recovery
