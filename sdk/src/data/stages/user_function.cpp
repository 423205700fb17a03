#include "data/stages/user_function.h"

#include <fmt/format.h>

#include <new>
#include <stdexcept>

#include "holdfast/base/shown_text.h"

namespace holdfast {

void rethrow_for_sample(const std::string& sample, const char* stage, const std::string& name) {
  const std::string place = name.empty() ? std::string(stage) : fmt::format("{} {}", stage, quoted_text(name));
  const auto problem = [&](const char* what) { return fmt::format("the function of {} failed: {}", place, what); };
  try {
    throw;
  } catch (const Error& error) {
    std::throw_with_nested(FailedFunction(error.code(), sample, problem(error.what())));
  } catch (const std::bad_alloc&) {
    // Its own text is the name of its class.
    std::throw_with_nested(FailedFunction(ErrorCode::out_of_memory, sample, problem("there is not enough memory")));
  } catch (const std::exception& error) {
    std::throw_with_nested(std::runtime_error(fmt::format("{} of the data set: {}", sample, problem(error.what()))));
  }
}

}  // namespace holdfast
