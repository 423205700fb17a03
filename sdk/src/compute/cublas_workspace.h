#pragma once

// cuBLAS gives the same bits again only with a workspace whose size does not depend on what runs at once. It reads the
// size from the environment when CUDA starts, and LibTorch refuses to compute without it. Holdfast's own products need
// no such thing: they call cuBLASLt, with workspaces of their own.

namespace holdfast::compute {

inline constexpr const char* kCublasWorkspaceVariable = "CUBLAS_WORKSPACE_CONFIG";
inline constexpr const char* kCublasWorkspace = ":4096:8";  // eight buffers of 4 MiB

}  // namespace holdfast::compute
