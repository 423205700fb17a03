// A matrix product on cuBLASLt. An algorithm may use only what the shape says: alignments are those of rows,
// not of addresses, and sums that are split must be added in one order. So the choice, and with it the bits,
// does not depend on where arrays lie or on timing. docs/decisions/device-arithmetic.md

#include "compute/cuda/products/matrix_product.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <bit>

#include "compute/cuda/kernels/columns.h"
#include "compute/cuda/products/bfloat16_arrays.h"
#include "compute/cuda/runtime/array_alignment.h"

namespace holdfast::compute {

// The workspace that the library's kernels for this generation of devices expect.
static constexpr std::size_t kMaximumWorkspaceBytes = std::size_t{32} << 20;

static cublasLtMatrixLayout_t make_layout(cudaDataType_t type, std::int64_t rows, std::int64_t columns,
                                          std::int64_t row_stride) {
  cublasLtMatrixLayout_t made = nullptr;
  // Rows and columns change places, because the library reads by columns.
  check_cublas(cublasLtMatrixLayoutCreate(&made, type, static_cast<std::uint64_t>(columns),
                                          static_cast<std::uint64_t>(rows), row_stride),
               fmt::format("cublasLtMatrixLayoutCreate of [{}, {}]", rows, columns));
  return made;
}

MatrixProduct::Array::Array(std::int64_t rows, std::int64_t columns)
    : layout(make_layout(CUDA_R_32F, rows, columns, columns)), alignment(alignment_of_rows(columns)) {}

MatrixProduct::Array::Array(const Bfloat16Matrix& rounded)
    : layout(make_layout(CUDA_R_16BF, rounded.rows, rounded.columns, rounded.row_stride())),
      alignment(kWidestAccess),
      copy(rounded) {}

// The matrices of several products are one tall matrix for the rounding, and for the library the first of them.
MatrixProduct::Array MatrixProduct::factor(std::int64_t rows, std::int64_t columns, std::int64_t matrices,
                                           Precision precision) {
  if (precision != Precision::bf16) return Array(rows, columns);
  Array one(Bfloat16Matrix{.rows = rows, .columns = columns});
  one.copy.rows *= matrices;
  return one;
}

// `offset` leads from the matrix of one product to that of the next; 0 where it is the same.
void MatrixProduct::repeat(const Array& array, std::int64_t offset) const {
  const auto count = static_cast<std::int32_t>(shape_.batches);
  check_cublas(
      cublasLtMatrixLayoutSetAttribute(array.layout.get(), CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof(count)),
      fmt::format("the number of products for {}", operation_));
  check_cublas(cublasLtMatrixLayoutSetAttribute(array.layout.get(), CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                                &offset, sizeof(offset)),
               fmt::format("the distance of products for {}", operation_));
}

template <class Value>
void MatrixProduct::set(cublasLtMatmulDescAttributes_t attribute, const Value& value) {
  check_cublas(cublasLtMatmulDescSetAttribute(desc_.get(), attribute, &value, sizeof(value)), operation_);
}

// The library reads arrays by columns, so it sees each of our row-major arrays transposed. Since transpose(left x
// right) = transpose(right) x transpose(left), our left factor is its right one.
MatrixProduct::MatrixProduct(CudaContext& context, const std::string& operation, const ProductShape& shape)
    : context_(context), operation_(operation), shape_(shape) {
  HOLDFAST_ASSERT(!shape.are_factors_given || shape.precision == Precision::bf16);
  HOLDFAST_ASSERT(shape.batches == 1 || !shape.has_bias);
  cublasLtMatmulDesc_t desc = nullptr;
  check_cublas(cublasLtMatmulDescCreate(&desc, compute_type(shape.precision), CUDA_R_32F),
               fmt::format("cublasLtMatmulDescCreate for {}", operation));
  desc_.reset(desc);
  const auto transposed = [](bool is) { return is ? CUBLAS_OP_T : CUBLAS_OP_N; };
  set(CUBLASLT_MATMUL_DESC_TRANSA, transposed(shape.is_right_transposed));
  set(CUBLASLT_MATMUL_DESC_TRANSB, transposed(shape.is_left_transposed));
  const std::int64_t lefts = shape.has_one_left ? 1 : shape.batches;
  const std::int64_t rights = shape.has_one_right ? 1 : shape.batches;
  left_ = shape.is_left_transposed ? factor(shape.inner, shape.rows, lefts, shape.precision)
                                   : factor(shape.rows, shape.inner, lefts, shape.precision);
  right_ = shape.is_right_transposed ? factor(shape.columns, shape.inner, rights, shape.precision)
                                     : factor(shape.inner, shape.columns, rights, shape.precision);
  result_ = Array(shape.rows, shape.columns);
  if (shape.batches > 1) {
    // A rounded factor has padded rows.
    const auto offset_of = [](const Array& array, std::int64_t matrices, std::int64_t elements) {
      if (matrices == 1) return std::int64_t{0};
      return array.copy.rows == 0 ? elements : array.copy.rows / matrices * array.copy.row_stride();
    };
    repeat(left_, offset_of(left_, lefts, shape.rows * shape.inner));
    repeat(right_, offset_of(right_, rights, shape.inner * shape.columns));
    repeat(result_, shape.rows * shape.columns);
  }

  bool found = false;
  if (shape.has_bias) {
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    // The heuristic takes the bias's alignment from its address, but does not read it.
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, std::bit_cast<const void*>(std::uintptr_t{kWidestAccess}));
    found = choose_algorithm();
    adds_bias_after_ = !found;
  }
  if (!found) {
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_DEFAULT);
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(nullptr));
    found = choose_algorithm();
  }
  if (!found) throw Error(ErrorCode::unsupported, fmt::format("cuBLASLt has no algorithm for {}", operation));
  describe_algorithm();
}

template <class Value>
static void prefer(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute,
                   const Value& value) {
  check_cublas(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof(value)),
               "cublasLtMatmulPreferenceSetAttribute");
}

// Returns 0 if the algorithm has no such attribute.
template <class Value>
static Value config_of(const cublasLtMatmulAlgo_t& algorithm, cublasLtMatmulAlgoConfigAttributes_t attribute) {
  Value value{};
  std::size_t written = 0;
  static_cast<void>(cublasLtMatmulAlgoConfigGetAttribute(&algorithm, attribute, &value, sizeof(value), &written));
  return value;
}

// If the heuristic takes the first mask as a request for sums in parts and finds no algorithm, the second mask asks for
// undivided sums.
bool MatrixProduct::choose_algorithm() {
  return choose_algorithm(kOrderedReductions) || choose_algorithm(CUBLASLT_REDUCTION_SCHEME_NONE);
}

bool MatrixProduct::choose_algorithm(std::uint32_t reduction_schemes) {
  cublasLtMatmulPreference_t made = nullptr;
  check_cublas(cublasLtMatmulPreferenceCreate(&made), "cublasLtMatmulPreferenceCreate");
  const std::unique_ptr<cublasLtMatmulPreferenceOpaque_t, Release> preference(made);
  prefer(made, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{kMaximumWorkspaceBytes});
  prefer(made, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reduction_schemes);
  prefer(made, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, static_cast<std::uint32_t>(right_.alignment));
  prefer(made, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, static_cast<std::uint32_t>(left_.alignment));
  prefer(made, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, static_cast<std::uint32_t>(result_.alignment));
  prefer(made, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, static_cast<std::uint32_t>(result_.alignment));

  std::array<cublasLtMatmulHeuristicResult_t, 16> results{};
  int count = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      context_.cublas(), desc_.get(), right_.layout.get(), left_.layout.get(), result_.layout.get(),
      result_.layout.get(), made, static_cast<int>(results.size()), results.data(), &count);
  // Not an error yet: the next mask, or the product without its bias, may have an algorithm.
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) return false;
  check_cublas(status, fmt::format("cublasLtMatmulAlgoGetHeuristic for {}", operation_));
  for (const auto& result : std::span(results).first(static_cast<std::size_t>(count))) {
    if (result.state != CUBLAS_STATUS_SUCCESS || result.workspaceSize > kMaximumWorkspaceBytes) continue;
    if (!is_ordered(config_of<std::uint32_t>(result.algo, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME))) continue;
    // The heuristic may name an algorithm that this device refuses; without this check the first step would fail.
    cublasLtMatmulHeuristicResult_t checked{};
    if (cublasLtMatmulAlgoCheck(context_.cublas(), desc_.get(), right_.layout.get(), left_.layout.get(),
                                result_.layout.get(), result_.layout.get(), &result.algo,
                                &checked) != CUBLAS_STATUS_SUCCESS) {
      continue;
    }
    // The check may ask for more than the heuristic said.
    const std::size_t bytes = std::max(result.workspaceSize, checked.workspaceSize);
    if (bytes > kMaximumWorkspaceBytes) continue;
    algorithm_ = result.algo;
    library_bytes_ = round_to_block(bytes);
    return true;
  }
  return false;
}

void MatrixProduct::describe_algorithm() {
  const auto parts = config_of<std::int32_t>(algorithm_, CUBLASLT_ALGO_CONFIG_SPLITK_NUM);
  description_ = fmt::format(
      "algorithm {}, tile {}, stages {}, {} {}", config_of<std::int32_t>(algorithm_, CUBLASLT_ALGO_CONFIG_ID),
      config_of<std::uint32_t>(algorithm_, CUBLASLT_ALGO_CONFIG_TILE_ID),
      config_of<std::uint32_t>(algorithm_, CUBLASLT_ALGO_CONFIG_STAGES_ID), parts, parts == 1 ? "part" : "parts");
}

void MatrixProduct::check_alignment(const void* array, std::size_t alignment, const char* name) const {
  if (is_aligned(array, alignment)) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} needs the {} to be aligned to {} bytes: let it begin with a whole row", operation_, name,
                          alignment));
}

const void* MatrixProduct::prepare(const Array& factor, const float* array, const char* name, std::byte* place) const {
  if (factor.copy.rows == 0) {
    check_alignment(array, factor.alignment, name);
    return array;
  }
  Bfloat16* const copy = reinterpret_cast<Bfloat16*>(place);
  round_to_bfloat16(factor.copy, array, copy, context_.stream());
  return copy;
}

void MatrixProduct::run(const ProductArrays& arrays, std::byte* workspace) {
  std::byte* const copies = workspace + library_bytes_;
  const void* left = arrays.given_left;
  const void* right = arrays.given_right;
  if (!shape_.are_factors_given) {
    left = prepare(left_, arrays.left, "left factor", copies);
    right = prepare(right_, arrays.right, "right factor", copies + left_.copy.bytes());
  }
  check_alignment(arrays.result, result_.alignment, "result");
  const bool adds_bias = shape_.has_bias && !adds_bias_after_;
  if (adds_bias) {
    // The address under which the algorithm was chosen promised so much.
    check_alignment(arrays.bias, kWidestAccess, "bias");
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, arrays.bias);
  }
  const float alpha = 1;
  // With 0 the library does not read the result, so undefined memory there is harmless.
  const float beta = arrays.adds ? 1 : 0;
  check_cublas(cublasLtMatmul(context_.cublas(), desc_.get(), &alpha, right, right_.layout.get(), left,
                              left_.layout.get(), &beta, arrays.result, result_.layout.get(), arrays.result,
                              result_.layout.get(), &algorithm_, workspace, library_bytes_, context_.stream()),
               operation_);
  if (shape_.has_bias && adds_bias_after_) {
    add_to_columns(context_.stream(), operation_, {shape_.rows, shape_.columns}, arrays.bias, arrays.result);
  }
}

}  // namespace holdfast::compute
