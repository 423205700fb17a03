#include "emulation/host_cublas.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <map>

#include "compute/arithmetic/bfloat16.h"
#include "compute/cuda/runtime/cuda_error.h"

namespace holdfast::host_cublas {
namespace {

struct Description {
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  std::map<int, std::int32_t> choices{};
  const float* bias = nullptr;
};

// A matrix that is stored by columns.
struct Layout {
  cudaDataType_t type = CUDA_R_32F;
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  std::int64_t column_stride = 0;
  std::int32_t batches = 1;
  std::int64_t batch_offset = 0;  // in elements
};

struct Preference {
  std::map<int, std::uint32_t> alignments;
};

// The problem that an algorithm was found for. It is copied like the library's own algorithms.
struct Algorithm {
  int number;  // in the order of the heuristic
  std::uint32_t left_alignment;
  std::uint32_t right_alignment;
  std::uint32_t result_alignment;
};
static_assert(sizeof(Algorithm) <= sizeof(cublasLtMatmulAlgo_t));

template <class Own, class Handle>
Own& own(Handle handle) {
  return *reinterpret_cast<Own*>(handle);
}
template <class Own, class Handle>
const Own& own_const(Handle handle) {
  return *reinterpret_cast<const Own*>(handle);
}

bool is_transposed(const Description& description, cublasLtMatmulDescAttributes_t which) {
  const auto found = description.choices.find(which);
  return found != description.choices.end() && found->second == CUBLAS_OP_T;
}

bool has_bias(const Description& description) {
  const auto found = description.choices.find(CUBLASLT_MATMUL_DESC_EPILOGUE);
  return found != description.choices.end() && found->second == CUBLASLT_EPILOGUE_BIAS;
}

struct Matrix {
  const Layout& layout;
  const void* elements;
  bool is_transposed;
  std::int64_t first = 0;  // element

  std::uint64_t rows() const { return is_transposed ? layout.columns : layout.rows; }
  std::uint64_t columns() const { return is_transposed ? layout.rows : layout.columns; }
  double at(std::uint64_t row, std::uint64_t column) const {
    if (is_transposed) std::swap(row, column);
    const std::uint64_t index =
        static_cast<std::uint64_t>(first) + row + column * static_cast<std::uint64_t>(layout.column_stride);
    if (layout.type == CUDA_R_32F) return static_cast<const float*>(elements)[index];
    const std::uint16_t bits = static_cast<const std::uint16_t*>(elements)[index];
    return std::bit_cast<float>(compute::widen_bfloat16(bits));
  }
};

void expect_aligned(const void* array, std::uint32_t alignment) {
  library().was_misled |= reinterpret_cast<std::uintptr_t>(array) % alignment != 0;
}

}  // namespace

Library& library() {
  static Library library;
  return library;
}

}  // namespace holdfast::host_cublas

using namespace holdfast::host_cublas;

extern "C" {

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* made, cublasComputeType_t compute, cudaDataType_t) {
  *made = reinterpret_cast<cublasLtMatmulDesc_t>(new Description{.compute = compute});
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t description) {
  delete reinterpret_cast<Description*>(description);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t name,
                                              const void* value, size_t bytes) {
  if (name == CUBLASLT_MATMUL_DESC_BIAS_POINTER) {
    std::memcpy(&own<Description>(description).bias, value, bytes);
  } else {
    std::memcpy(&own<Description>(description).choices[name], value, sizeof(std::int32_t));
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* made, cudaDataType type, uint64_t rows,
                                          uint64_t columns, int64_t column_stride) {
  if (column_stride < static_cast<int64_t>(rows)) return CUBLAS_STATUS_INVALID_VALUE;
  *made = reinterpret_cast<cublasLtMatrixLayout_t>(new Layout{type, rows, columns, column_stride});
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t name,
                                                const void* value, size_t bytes) {
  Layout& own_layout = own<Layout>(layout);
  if (name == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT && bytes == sizeof(own_layout.batches)) {
    std::memcpy(&own_layout.batches, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
  }
  if (name != CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET || bytes != sizeof(own_layout.batch_offset)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  std::memcpy(&own_layout.batch_offset, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete reinterpret_cast<Layout*>(layout);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* made) {
  *made = reinterpret_cast<cublasLtMatmulPreference_t>(new Preference);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete reinterpret_cast<Preference*>(preference);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t name, const void* value,
                                                    size_t bytes) {
  if (bytes == sizeof(std::uint32_t)) std::memcpy(&own<Preference>(preference).alignments[name], value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t description,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatmulPreference_t preference, int most,
                                              cublasLtMatmulHeuristicResult_t* results, int* count) {
  if (has_bias(own<Description>(description)) && library().refuses_bias) return CUBLAS_STATUS_NOT_SUPPORTED;
  auto& alignments = own<Preference>(preference).alignments;
  Algorithm algorithm{.number = 0,
                      .left_alignment = alignments[CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES],
                      .right_alignment = alignments[CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES],
                      .result_alignment = alignments[CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES]};
  for (*count = 0; *count < std::min(most, 3); ++*count) {
    algorithm.number = *count;
    std::memcpy(&results[*count].algo, &algorithm, sizeof(algorithm));
    results[*count].state = CUBLAS_STATUS_SUCCESS;
    results[*count].workspaceSize = library().workspace_bytes;
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                                       cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                       const cublasLtMatmulAlgo_t* algo, cublasLtMatmulHeuristicResult_t* result) {
  Algorithm algorithm{};
  std::memcpy(&algorithm, algo, sizeof(algorithm));
  if (algorithm.number < library().refused_algorithms) return CUBLAS_STATUS_NOT_SUPPORTED;
  result->workspaceSize = library().workspace_bytes;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t*, cublasLtMatmulAlgoConfigAttributes_t,
                                                    void* value, size_t bytes, size_t* written) {
  std::memset(value, 0, bytes);
  *written = bytes;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t handle, const void* alpha, const void* left,
                              cublasLtMatrixLayout_t left_layout, const void* right,
                              cublasLtMatrixLayout_t right_layout, const void* beta, const void* added,
                              cublasLtMatrixLayout_t, void* result, cublasLtMatrixLayout_t result_layout,
                              const cublasLtMatmulAlgo_t* algo, void* workspace, size_t workspace_bytes, cudaStream_t) {
  if (workspace_bytes < library().workspace_bytes) return CUBLAS_STATUS_INVALID_VALUE;
  std::memset(workspace, 0xFF, workspace_bytes);
  const auto& description = own_const<Description>(handle);
  const auto& layout = own_const<Layout>(result_layout);
  Matrix a{own_const<Layout>(left_layout), left, is_transposed(description, CUBLASLT_MATMUL_DESC_TRANSA)};
  Matrix b{own_const<Layout>(right_layout), right, is_transposed(description, CUBLASLT_MATMUL_DESC_TRANSB)};
  const bool fits = a.rows() == layout.rows && b.columns() == layout.columns && a.columns() == b.rows();
  if (!fits || layout.type != CUDA_R_32F || a.layout.type != b.layout.type) return CUBLAS_STATUS_INVALID_VALUE;
  if (a.layout.batches != layout.batches || b.layout.batches != layout.batches) return CUBLAS_STATUS_INVALID_VALUE;
  Algorithm algorithm{};
  std::memcpy(&algorithm, algo, sizeof(algorithm));
  if (algorithm.number < library().refused_algorithms) return CUBLAS_STATUS_NOT_SUPPORTED;
  expect_aligned(left, algorithm.left_alignment);
  expect_aligned(right, algorithm.right_alignment);
  expect_aligned(result, algorithm.result_alignment);
  library().factor_type = a.layout.type;
  library().compute_type = description.compute;
  for (std::int32_t batch = 0; batch < layout.batches; ++batch) {
    a.first = batch * a.layout.batch_offset;
    b.first = batch * b.layout.batch_offset;
    for (std::uint64_t column = 0; column < layout.columns; ++column) {
      for (std::uint64_t row = 0; row < layout.rows; ++row) {
        double sum = 0;
        for (std::uint64_t i = 0; i < a.columns(); ++i) sum += a.at(row, i) * b.at(i, column);
        const std::uint64_t index = static_cast<std::uint64_t>(batch * layout.batch_offset) + row +
                                    column * static_cast<std::uint64_t>(layout.column_stride);
        sum *= *static_cast<const float*>(alpha);
        const float factor = *static_cast<const float*>(beta);
        if (factor != 0) sum += factor * static_cast<const float*>(added)[index];
        if (has_bias(description)) sum += description.bias[row];
        static_cast<float*>(result)[index] = static_cast<float>(sum);
      }
    }
  }
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"

namespace holdfast::compute {

void check_cublas(cublasStatus_t status, const std::string& call) {
  if (status != CUBLAS_STATUS_SUCCESS) throw Error(ErrorCode::unavailable, call + ": " + std::to_string(status));
}

}  // namespace holdfast::compute
