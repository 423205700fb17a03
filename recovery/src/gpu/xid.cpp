// The table errs on the side of doing nothing: an error that is only recorded still reaches the process by its next
// CUDA call. docs/decisions/failing-devices.md
#include "gpu/xid.h"

#include <algorithm>
#include <array>

namespace holdfast::recovery {
namespace {

using enum XidAction;

// NVML does not say which process caused an error, and other programs may use the device. So an error that ends one
// process's context is left to that process, whose next CUDA call fails. A killed process causes some of these itself
// (43, 45); acting on them would kill its successor. The other end of a broken link (74) reports the error as well
// and is not to blame.
constexpr std::array kXids{
    Xid{8, "the GPU stopped processing", report},
    Xid{11, "invalid commands", report},
    Xid{13, "an exception in a kernel", report},
    Xid{25, "invalid commands", report},
    Xid{31, "a kernel used memory that is not there", report},
    Xid{32, "invalid commands", report},
    Xid{38, "an error of the driver's firmware", report},
    Xid{43, "a process's work was ended because of its own error", report},
    Xid{44, "an error while contexts were switched", report},
    Xid{45, "the work of a process was removed because it ended or had an error", report},
    Xid{46, "the GPU stopped processing and needs a reset", leave_out},
    Xid{48, "an error of its memory that cannot be corrected", replace},
    Xid{54, "auxiliary power is not connected", report},
    Xid{61, "a micro-controller of the GPU stopped at a breakpoint", report},
    Xid{62, "a micro-controller of the GPU halted", leave_out},
    Xid{63, "memory that failed is retired or remapped with the next reset", report},
    Xid{64, "memory that failed cannot be retired or remapped", leave_out},
    Xid{69, "invalid commands", report},
    Xid{74, "an error of NVLink", report},
    Xid{79, "the GPU has fallen off the bus", leave_out},
    Xid{92, "many errors of its memory that were corrected", report},
    Xid{94, "an error of its memory, contained to the process that met it", replace},
    Xid{95, "an error of its memory that was not contained", leave_out},
    // Often caused by a kernel that hangs, and over when its process ends. If not, the failures that follow leave the
    // device out.
    Xid{109, "a switch between contexts took too long", replace},
    Xid{110, "a security fault", leave_out},
    Xid{119, "the GPU's system processor did not answer", leave_out},
    Xid{120, "an error of the GPU's system processor", leave_out},
    Xid{137, "an invalid access by NVLink", report},
    Xid{140, "an error of its memory that the driver could not handle", leave_out},
    Xid{143, "the GPU could not be initialised", leave_out},
    Xid{154, "what the GPU needs to recover has changed", report},
    Xid{158, "a fatal timeout of the GPU", leave_out},
    Xid{167, "a fatal timeout of PCI Express", leave_out},
    Xid{169, "a micro-controller of the GPU halted", leave_out},
    Xid{171, "an error of its DRAM that cannot be corrected", replace},
    Xid{172, "an error of its SRAM that cannot be corrected", replace},
};

}  // namespace

Xid xid_of(int number) {
  const auto* const found =
      std::find_if(kXids.begin(), kXids.end(), [&](const Xid& xid) { return xid.number == number; });
  return found == kXids.end() ? Xid{number, "an error that Holdfast does not know", report} : *found;
}

std::string_view to_string(XidAction action) {
  constexpr std::array kNames{"report", "replace", "leave_out"};  // in the order of the enumerators
  return kNames.at(static_cast<std::size_t>(action));
}

}  // namespace holdfast::recovery
