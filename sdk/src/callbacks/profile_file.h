#pragma once

// Spans of a profile as the Profile tab of TensorBoard reads them: a message XSpace
// (tsl/profiler/protobuf/xplane.proto) with one plane of this process and a line for each of its threads.

#include <string>
#include <vector>

#include "holdfast/train/profile.h"

namespace holdfast {

std::string profile_space(const std::vector<ProfileSpan>& spans);

}  // namespace holdfast
