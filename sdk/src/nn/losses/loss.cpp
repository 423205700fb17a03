#include "holdfast/nn/loss.h"

#include "holdfast/base/error.h"

namespace holdfast {

// A loss of an application has no code for devices.
void Loss::evaluate_on(compute::DeviceKernels&, const DeviceBatch&, float, float*) const {
  throw Error(ErrorCode::unsupported, "loss " + name() + " computes on CPUs only; train on CPUs, or use another loss");
}

}  // namespace holdfast
