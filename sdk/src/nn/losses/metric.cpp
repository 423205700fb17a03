#include "holdfast/nn/metric.h"

#include "holdfast/base/error.h"

namespace holdfast {

// A metric of an application has no code for devices.
void Metric::sum_on(compute::DeviceKernels&, const DeviceBatch&) const {
  throw Error(ErrorCode::unsupported,
              "metric " + name() + " computes on CPUs only; train on CPUs, or leave the metric out");
}

}  // namespace holdfast
