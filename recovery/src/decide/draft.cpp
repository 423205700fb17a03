#include "decide/draft.h"

#include <algorithm>
#include <utility>

#include "holdfast/base/error.h"

namespace holdfast::recovery {

void act(Draft& draft, Action action) {
  draft.actions.push_back(std::move(action));
}

void because(Draft& draft, const std::string& clause) {
  if (draft.reason.ends_with(clause)) return;
  draft.reason += (draft.reason.empty() ? "" : "; ") + clause;
}

void note_slot_change(Draft& draft, const DeviceSlotChange& change) {
  draft.device_slot_changes.push_back(change);
}

Member& member_of(Draft& draft, int id) {
  std::vector<Member>& members = draft.state.members;
  const auto found = std::find_if(members.begin(), members.end(), [id](const Member& m) { return m.id == id; });
  HOLDFAST_ASSERT(found != members.end());
  return *found;
}

Member& subject(Draft& draft) {
  HOLDFAST_ASSERT(draft.subject.has_value());
  return member_of(draft, *draft.subject);
}

const Member& subject(const Draft& draft) {
  HOLDFAST_ASSERT(draft.subject.has_value());
  const Member* found = find_member(draft.state, *draft.subject);
  HOLDFAST_ASSERT(found != nullptr);
  return *found;
}

bool is_subject_gone(const Draft& draft) {
  return draft.event.kind == EventKind::exited || draft.event.kind == EventKind::start_failed;
}

}  // namespace holdfast::recovery
