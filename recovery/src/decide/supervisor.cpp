#include "decide/supervisor.h"

#include "decide/decider.h"

namespace holdfast::recovery {

State initial_state(const SupervisorPolicy& policy, int first_generation) {
  State state;
  state.policy = policy;
  state.next_generation = first_generation;
  state.target = policy.replicas;
  state.places.resize(static_cast<std::size_t>(policy.places));
  return state;
}

Decision decide(const State& state, const Event& event, Moment now) {
  return Decider(state, event, now).decide();
}

}  // namespace holdfast::recovery
