#pragma once

// What a process does to itself when a fault strikes; see FaultKind. Functions that end the process do not return.

#include <unistd.h>

#include "holdfast/recovery/faults.h"

namespace holdfast::recovery::strike {

void kill(const Fault& fault, const Faults::Process& process);
void stop(const Fault& fault, const Faults::Process& process);
void pause(const Fault& fault, const Faults::Process& process);
void segfault(const Fault& fault, const Faults::Process& process);
// Without the handlers of exit(). They would run next to threads that still compute, and might never end.
template <int code>
void exit_with(const Fault&, const Faults::Process&) {
  ::_exit(code);
}
void throw_exception(const Fault& fault, const Faults::Process& process);
void terminate(const Fault& fault, const Faults::Process& process);
void loop(const Fault& fault, const Faults::Process& process);
void hang(const Fault& fault, const Faults::Process& process);
void run_out_of_memory(const Fault& fault, const Faults::Process& process);
void close_channel(const Fault& fault, const Faults::Process& process);
void send_garbage(const Fault& fault, const Faults::Process& process);
void lose_beats(const Fault& fault, const Faults::Process& process);
void delay_beats(const Fault& fault, const Faults::Process& process);
void damage_savepoint(const Fault& fault, const Faults::Process& process);
void kill_watchdog(const Fault& fault, const Faults::Process& process);

}  // namespace holdfast::recovery::strike
