#pragma once

// Exceptions of LibTorch as errors of Holdfast.

#include <c10/util/Exception.h>

#include <exception>
#include <new>
#include <string>

#include "holdfast/base/error.h"

namespace holdfast::torch {

// Throws Error for what LibTorch said of `what`: "forward()".
[[noreturn]] void refuse_as_torch(const char* what, const std::string& said);
// Throws Error if it speaks of a device that failed or of a library of CUDA.
void throw_if_of_device(const char* what, const std::string& said);
// Throws Error for an exception of the application's own function, or of the standard library within LibTorch.
[[noreturn]] void refuse_as_thrown(const char* what, const std::string& said);
[[noreturn]] void throw_out_of_memory(const char* what, const std::string& said);

// What LibTorch throws says what was wrong, and in which operation; the lines after the first are addresses. Some of
// its checks throw classes of the standard library, as functions of the application do.
template <class Run>
auto with_errors_of_torch(const char* what, const Run& run) {
  try {
    return run();
  } catch (const Error&) {
    throw;
  } catch (const c10::OutOfMemoryError& error) {
    throw_out_of_memory(what, error.what_without_backtrace());
  } catch (const c10::Error& error) {
    throw_if_of_device(what, error.what_without_backtrace());
    refuse_as_torch(what, error.what_without_backtrace());
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    refuse_as_thrown(what, error.what());
  } catch (...) {
    refuse_as_thrown(what, "something that is not a std::exception");
  }
}

}  // namespace holdfast::torch
