#pragma once

#include <string>

#include "holdfast/base/error.h"

namespace holdfast {

// system_error() of a file operation, with advice on what to do about it.
Error file_error(int error_number, const std::string& sentence);

}  // namespace holdfast
