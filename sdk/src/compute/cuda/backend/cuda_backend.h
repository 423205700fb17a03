#pragma once

// The arithmetic of layers on one CUDA device.

#include <memory>

#include "compute/backend.h"
#include "compute/cuda/kernels/matrix_precision.h"

namespace holdfast::compute {

// Back ends of one device share its memory space, and with it the order of all they do. Throws Error{unavailable} for a
// device that is not there.
std::unique_ptr<Backend> make_cuda_backend(int device, Precision precision);

}  // namespace holdfast::compute
