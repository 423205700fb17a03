#pragma once

// Faults that whoever starts a program gives it, for tests of programs that have no option for them.

#include <string>
#include <vector>

namespace holdfast::recovery {

// Holds specifications (fault_plan.h), separated by semicolons.
inline constexpr const char* kFaultsVariable = "HOLDFAST_FAULTS";

// What the variable holds, in its order and unread; none where it is not set or empty.
std::vector<std::string> faults_of_environment();

}  // namespace holdfast::recovery
