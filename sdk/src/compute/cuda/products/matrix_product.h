#pragma once

// A product of row-major f32 matrices on cuBLASLt, made for one shape. The algorithm is the first one of the library's
// heuristic that its check accepts and whose sums have one order. So it depends on the shape, the device and the
// library, never on timing. At Precision::bf16 each run first rounds its factors into the workspace, unless the caller
// passes rounded ones. The result is f32. docs/decisions/device-arithmetic.md

#include <memory>
#include <string>

#include "compute/cuda/kernels/matrix_precision.h"
#include "compute/cuda/products/bfloat16_matrix.h"
#include "compute/cuda/runtime/cuda_context.h"

namespace holdfast::compute {

struct ProductShape {
  std::int64_t rows = 0;  // the result is [rows, columns]
  std::int64_t inner = 0;
  std::int64_t columns = 0;
  bool is_left_transposed = false;   // the left array is [inner, rows] instead of [rows, inner]
  bool is_right_transposed = false;  // the right array is [columns, inner] instead of [inner, columns]
  bool has_bias = false;             // [columns], added to each row
  Precision precision = Precision::f32;
  // Several products of one shape. The matrices of an array follow one another without gaps, or all products have the
  // one matrix of a factor.
  std::int64_t batches = 1;
  bool has_one_left = false;
  bool has_one_right = false;
  bool are_factors_given = false;  // the caller passes bf16 factors, laid out as left_copy() and right_copy()
};

struct ProductArrays {
  const float* left = nullptr;
  const float* right = nullptr;
  const Bfloat16* given_left = nullptr;  // instead of the two above, if factors are given
  const Bfloat16* given_right = nullptr;
  const float* bias = nullptr;  // ignored without one
  float* result = nullptr;
  bool adds = false;  // adds to the result's content instead of replacing it
};

class MatrixProduct {
 public:
  // The caller must hold the stream lock. `operation` names the product in errors. Throws Error{unsupported} if the
  // library has no algorithm.
  MatrixProduct(CudaContext& context, const std::string& operation, const ProductShape& shape);

  // How many bytes run() needs at `workspace`, which must have the alignment of cudaMalloc().
  std::size_t workspace_bytes() const {
    return library_bytes_ + (shape_.are_factors_given ? 0 : left_.copy.bytes() + right_.copy.bytes());
  }
  // The layouts of the rounded factors at bf16.
  const Bfloat16Matrix& left_copy() const { return left_.copy; }
  const Bfloat16Matrix& right_copy() const { return right_.copy; }
  // "algorithm 21, tile 18, stages 15, 1 part"
  const std::string& algorithm() const { return description_; }

  // The caller must hold the stream lock.
  void run(const ProductArrays& arrays, std::byte* workspace);

 private:
  struct Release {
    void operator()(cublasLtMatmulDesc_t desc) const { static_cast<void>(cublasLtMatmulDescDestroy(desc)); }
    void operator()(cublasLtMatrixLayout_t layout) const { static_cast<void>(cublasLtMatrixLayoutDestroy(layout)); }
    void operator()(cublasLtMatmulPreference_t preference) const {
      static_cast<void>(cublasLtMatmulPreferenceDestroy(preference));
    }
  };
  using Layout = std::unique_ptr<cublasLtMatrixLayoutOpaque_t, Release>;
  // A row-major array as the library sees it: its columns are our rows.
  struct Array {
    Array() = default;
    Array(std::int64_t rows, std::int64_t columns);
    // A factor that is rounded to bf16.
    explicit Array(const Bfloat16Matrix& rounded);

    Layout layout;
    std::size_t alignment = 0;
    Bfloat16Matrix copy{};  // empty if the library reads the caller's array
  };
  static Array factor(std::int64_t rows, std::int64_t columns, std::int64_t matrices, Precision precision);
  void repeat(const Array& array, std::int64_t offset) const;

  template <class Value>
  void set(cublasLtMatmulDescAttributes_t attribute, const Value& value);
  bool choose_algorithm();
  bool choose_algorithm(std::uint32_t reduction_schemes);
  void describe_algorithm();
  void check_alignment(const void* array, std::size_t alignment, const char* name) const;
  // What the library reads: the caller's array, or a copy of it at `place`.
  const void* prepare(const Array& factor, const float* array, const char* name, std::byte* place) const;

  CudaContext& context_;
  const std::string operation_;
  const ProductShape shape_;
  std::unique_ptr<cublasLtMatmulDescOpaque_t, Release> desc_;
  Array left_, right_, result_;
  bool adds_bias_after_ = false;  // no algorithm adds the bias itself, so a kernel does it afterwards
  cublasLtMatmulAlgo_t algorithm_{};
  std::size_t library_bytes_ = 0;  // of the workspace, before the copies of factors
  std::string description_;
};

}  // namespace holdfast::compute
