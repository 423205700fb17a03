// Members are described once, and the same description reads and sets them: two functions would have to name the same
// members in the same kinds, and a mistake in one would show only after a failure.

#include "holdfast/train/callback_state.h"

#include <fmt/format.h>

#include "holdfast/base/error.h"
#include "train/context/other_choices.h"

namespace holdfast {

void CallbackFields::refuse(const std::string& name, const char* what) const {
  throw OtherChoices(
      fmt::format("the state that the run has of the callback \"{}\" has {} \"{}\", which "
                  "describe_state() names. Use the callback that wrote it, or {}",
                  callback_, what, name, kHowToStartAnew));
}

template <typename Value>
CallbackFields& CallbackFields::add_value(const std::string& name, Value& member) {
  if (reads_ != nullptr) {
    if (!reads_->emplace(name, member).second) {
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("describe_state() of the callback \"{}\" adds \"{}\" twice; give each member a name of its own",
                      callback_, name));
    }
    return *this;
  }
  const auto found = sets_->find(name);
  if (found == sets_->end()) refuse(name, "no");
  const Value* const value = std::get_if<Value>(&found->second);
  if (value == nullptr) refuse(name, "another kind of");
  member = *value;
  return *this;
}

// Kinds that a savepoint does not have, in one that holds each of their values.
template <typename Stored, typename Member>
CallbackFields& CallbackFields::add_as(const std::string& name, Member& member) {
  auto stored = static_cast<Stored>(member);
  add_value(name, stored);
  if (sets_ == nullptr) return *this;
  const auto taken = static_cast<Member>(stored);
  // A NaN differs from itself, and fits every kind of number.
  if (static_cast<Stored>(taken) != stored && stored == stored) refuse(name, "a number out of range for");
  member = taken;
  return *this;
}

CallbackFields& CallbackFields::add(const std::string& name, std::int64_t& member) {
  return add_value(name, member);
}
CallbackFields& CallbackFields::add(const std::string& name, double& member) {
  return add_value(name, member);
}
CallbackFields& CallbackFields::add(const std::string& name, std::string& member) {
  return add_value(name, member);
}
CallbackFields& CallbackFields::add(const std::string& name, std::vector<double>& member) {
  return add_value(name, member);
}
CallbackFields& CallbackFields::add(const std::string& name, int& member) {
  return add_as<std::int64_t>(name, member);
}
CallbackFields& CallbackFields::add(const std::string& name, bool& member) {
  return add_as<std::int64_t>(name, member);
}
CallbackFields& CallbackFields::add(const std::string& name, float& member) {
  return add_as<double>(name, member);
}

}  // namespace holdfast
