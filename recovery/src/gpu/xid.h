#pragma once

// Xid errors: what NVIDIA's driver says in one number has happened to a device, and what the watchdog does about each.
// The numbers and what they call for are those of NVIDIA's catalogue for Ampere and later devices
// (docs.nvidia.com/deploy/xid-errors).

#include <string>
#include <string_view>

namespace holdfast::recovery {

enum class XidAction {
  report,     // written down: it is news, or it is one process's, which CUDA tells of it by its next call
  replace,    // what the device holds cannot be trusted: the replicas on it are replaced
  leave_out,  // the device needs a reset: its replicas are replaced, and it is left out where there is another
};

struct Xid {
  int number = 0;
  std::string_view what{};
  XidAction action = XidAction::report;
};

// One that is not in the table is reported.
Xid xid_of(int number);

std::string_view to_string(XidAction action);

}  // namespace holdfast::recovery
