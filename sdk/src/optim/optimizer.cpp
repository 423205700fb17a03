// An application's optimizer may know only the host. It is refused on a device before any number changes.

#include "holdfast/optim/optimizer.h"

#include "holdfast/base/error.h"

namespace holdfast {

void Optimizer::update_on(compute::DeviceKernels&, std::int64_t, std::span<float>, std::span<const float>,
                          std::span<const std::span<float>>) const {
  throw Error(ErrorCode::unsupported,
              "optimizer " + name() + " computes on CPUs only; train on CPUs, or use another optimizer");
}

}  // namespace holdfast
