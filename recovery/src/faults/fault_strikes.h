#pragma once

// What a process does to itself when a fault strikes; see FaultKind. Functions that end the process do not return.

#include "holdfast/recovery/faults.h"

namespace holdfast::recovery::strike {

void kill(const Fault& fault, const Faults::Place& place);
void stop(const Fault& fault, const Faults::Place& place);
void pause(const Fault& fault, const Faults::Place& place);
void segfault(const Fault& fault, const Faults::Place& place);
void exit0(const Fault& fault, const Faults::Place& place);
void exit1(const Fault& fault, const Faults::Place& place);
void exit3(const Fault& fault, const Faults::Place& place);
void throw_exception(const Fault& fault, const Faults::Place& place);
void terminate(const Fault& fault, const Faults::Place& place);
void loop(const Fault& fault, const Faults::Place& place);
void hang(const Fault& fault, const Faults::Place& place);
void run_out_of_memory(const Fault& fault, const Faults::Place& place);
void close_channel(const Fault& fault, const Faults::Place& place);
void send_garbage(const Fault& fault, const Faults::Place& place);
void lose_beats(const Fault& fault, const Faults::Place& place);
void delay_beats(const Fault& fault, const Faults::Place& place);
void damage_savepoint(const Fault& fault, const Faults::Place& place);
void kill_watchdog(const Fault& fault, const Faults::Place& place);

}  // namespace holdfast::recovery::strike
