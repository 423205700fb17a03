#include "train/fit/watching/watchers.h"

#include <nlohmann/json.hpp>

namespace holdfast {

std::string watchers_as_arguments(const std::vector<CallbackHandle>& callbacks) {
  nlohmann::json names = nlohmann::json::array();
  for (const CallbackHandle& callback : callbacks) names.push_back(callback->name());
  return nlohmann::json{{"callbacks", names}}.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace holdfast
