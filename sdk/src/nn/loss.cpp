#include "holdfast/nn/loss.h"

#include "holdfast/base/error.h"

namespace holdfast {

void Loss::evaluate_on(compute::DeviceKernels&, const DeviceBatch&, float, float*) const {
  throw Error(ErrorCode::unsupported,
              "loss " + name() + " computes on the host only; train on CPUs, or with another loss");
}

}  // namespace holdfast
