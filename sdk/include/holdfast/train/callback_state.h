#pragma once

// What a callback remembers across a failure (Callback::describe_state()):
//
//   void describe_state(CallbackFields& fields) override { fields.add("epoch", epoch_).add("best", best_); }

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace holdfast {

// What a callback can keep in a savepoint. Each kind of value comes back with the same bits.
using CallbackValue = std::variant<std::int64_t, double, std::string, std::vector<double>>;
using CallbackState = std::map<std::string, CallbackValue>;  // by names that the callback chooses

// The members of a callback that its state consists of. One object reads them all, another one sets them.
class CallbackFields {
 public:
  // Reads members of the callback of that name into `state`, which outlives the object.
  CallbackFields(std::string callback, CallbackState& state) : callback_(std::move(callback)), reads_(&state) {}
  // Sets them to what `state` has, which outlives the object.
  CallbackFields(std::string callback, const CallbackState& state) : callback_(std::move(callback)), sets_(&state) {}

  // A member under a name that no other one of this callback has. When members are set, it throws Error{incompatible}
  // for a name that the state does not have, a value of another kind, and a number that the member cannot hold.
  CallbackFields& add(const std::string& name, std::int64_t& member);
  CallbackFields& add(const std::string& name, int& member);                  // the same
  CallbackFields& add(const std::string& name, bool& member);                 // the same
  CallbackFields& add(const std::string& name, double& member);               // the same
  CallbackFields& add(const std::string& name, float& member);                // the same
  CallbackFields& add(const std::string& name, std::string& member);          // the same
  CallbackFields& add(const std::string& name, std::vector<double>& member);  // the same

 private:
  template <typename Value>
  CallbackFields& add_value(const std::string& name, Value& member);
  template <typename Stored, typename Member>
  CallbackFields& add_as(const std::string& name, Member& member);

  [[noreturn]] void refuse(const std::string& name, const char* what) const;

  std::string callback_;
  CallbackState* reads_ = nullptr;
  const CallbackState* sets_ = nullptr;
};

}  // namespace holdfast
