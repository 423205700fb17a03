#pragma once

// The arithmetic of layers on a CUDA device.

#include <memory>

#include "compute/backend.h"
#include "compute/cuda/kernels/matrix_precision.h"

namespace holdfast::compute {

// Back ends of one device share its memory space, and with it one order of all work. Throws Error{unavailable} if the
// device does not exist.
std::unique_ptr<Backend> make_cuda_backend(int device, Precision precision);

}  // namespace holdfast::compute
