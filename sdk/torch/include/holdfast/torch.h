#pragma once

// LibTorch's modules as models that Holdfast trains: fit(), callbacks, savepoints, mirrored replicas and recovery. The
// CMake target is Holdfast::torch, which exists where LibTorch was found. docs/torch.md begins with a program.
//
// Write `holdfast::torch::` in full: after `using namespace holdfast` the name `torch` means two namespaces.

#include "holdfast/torch/dropout.h"           // IWYU pragma: export
#include "holdfast/torch/trainable_module.h"  // IWYU pragma: export
