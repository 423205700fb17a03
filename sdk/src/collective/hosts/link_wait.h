#pragma once

// The one place at which a rank waits for other hosts: poll(), with a deadline and two ways to be cancelled.
//
// An event wakes the wait at once. The word of the rank's arena, which is what the watchdog cancels, has no descriptor.
// So a wait also ends every few milliseconds, and its caller looks at the word. A link that is shut down wakes the wait
// as well, since poll() reports its end.

#include <span>

#include "collective/hosts/link.h"
#include "holdfast/base/deadline.h"

namespace holdfast {

// What a rank waits for on a link.
struct LinkInterest {
  const Link* link = nullptr;
  bool to_receive = false;
  bool to_send = false;
};

enum class LinkWait {
  look_again,       // a link may be ready, or it is time to look whether the generation was ended
  cancelled,        // the event is set
  deadline_passed,  // nothing happened in time
};

// `cancel_event` is readable once the generation has ended, such as an eventfd that is never read; -1 if there is none.
// Throws Error of the system.
LinkWait wait_for_links(std::span<const LinkInterest> interests, int cancel_event, Deadline deadline);

}  // namespace holdfast
