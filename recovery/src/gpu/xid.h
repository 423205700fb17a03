#pragma once

// Xid errors: numbers by which NVIDIA's driver reports what happened to a device, and what the watchdog does about
// each. Numbers and actions follow NVIDIA's catalogue for Ampere and later devices
// (docs.nvidia.com/deploy/xid-errors).

#include <string>
#include <string_view>

namespace holdfast::recovery {

enum class XidAction {
  report,     // recorded only: information, or an error of one process, which its next CUDA call reports
  replace,    // the memory of the device cannot be trusted: the replicas on it are replaced
  leave_out,  // the device needs a reset: its replicas are replaced, and it is left out if there is another
};

struct Xid {
  int number = 0;
  std::string_view what{};
  XidAction action = XidAction::report;
};

// A number that is not in the table is recorded only.
Xid xid_of(int number);

std::string_view to_string(XidAction action);

}  // namespace holdfast::recovery
