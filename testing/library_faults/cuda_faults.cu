// Makes chosen calls of CUDA go wrong in any program, without a change to it. The driver loads the library that
// CUDA_INJECTION64_PATH names when it is initialised, and CUPTI tells it of every call:
//
//   CUDA_INJECTION64_PATH=.../libholdfast_cuda_faults.so
//   HOLDFAST_CUDA_FAULTS=function=cudaMalloc,rank=1,call=12,fault=fail,result=2 ./train
//
// Functions have the names of the runtime ("cudaMemcpyAsync") or of the driver ("cuLaunchKernel"); * is all of both. A
// call that fails has been made all the same: what it allocates is lost. Rules are described in fault_rules.h; where
// they cannot be read, or CUPTI is not there, a line on standard error says so and nothing fails. CUPTI is libcupti.so
// of this CUDA, or what HOLDFAST_CUPTI names.

#include <cuda_runtime.h>
#include <cupti.h>
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "fault_rules.h"

namespace {

using holdfast::resilience::LibraryFault;
using holdfast::resilience::LibraryFaults;

constexpr int kUnknownError = 999;  // of the runtime and of the driver

__global__ void trap_kernel() {
  __trap();
}

// Ends with its process.
__global__ void spin_kernel(volatile int* never) {
  while (*never == 0) {
  }
}

std::string variable(const char* name, const char* otherwise) {
  const char* const value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}

// Never destroyed: calls may be made until the very end.
struct Injection {
  LibraryFaults faults{variable("HOLDFAST_CUDA_FAULTS", "")};
  int rank = std::atoi(variable("RANK", "-1").c_str());
};
Injection* injection = nullptr;

// What the injection itself calls is not meant.
thread_local bool is_inside = false;

// The runtime calls "cudaMemcpyAsync_ptsz" where a program has a default stream for each thread.
std::string plain_name(const char* function) {
  std::string name = function == nullptr ? "" : function;
  for (const char* suffix : {"_ptsz", "_ptds"}) {
    const std::size_t length = std::strlen(suffix);
    if (name.size() > length && name.compare(name.size() - length, length, suffix) == 0) {
      name.resize(name.size() - length);
    }
  }
  return name;
}

// The stream of a launch; the default one for all other calls.
cudaStream_t stream_of(CUpti_CallbackDomain domain, CUpti_CallbackId id, const CUpti_CallbackData& call) {
  const bool is_launch = domain == CUPTI_CB_DOMAIN_RUNTIME_API && id == CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000;
  return is_launch ? static_cast<const cudaLaunchKernel_v7000_params*>(call.functionParams)->stream : nullptr;
}

void spin(cudaStream_t stream) {
  int* never = nullptr;
  if (cudaMalloc(reinterpret_cast<void**>(&never), sizeof *never) != cudaSuccess) return;
  static_cast<void>(cudaMemsetAsync(never, 0, sizeof *never, stream));
  spin_kernel<<<1, 1, 0, stream>>>(never);
}

void begin(const LibraryFault& fault, cudaStream_t stream) {
  switch (fault.kind) {
    case LibraryFault::Kind::hang:
      for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
    case LibraryFault::Kind::slow:
      std::this_thread::sleep_for(fault.delay);
      break;
    case LibraryFault::Kind::trap:
      trap_kernel<<<1, 1, 0, stream>>>();
      break;
    case LibraryFault::Kind::spin:
      spin(stream);
      break;
    case LibraryFault::Kind::fail:
    case LibraryFault::Kind::report:
      break;
  }
}

// Between its two callbacks a call carries the result that it is to have, plus one.
void on_call(CUpti_CallbackDomain domain, CUpti_CallbackId id, const CUpti_CallbackData& call) {
  if (call.callbackSite == CUPTI_API_EXIT) {
    const std::uint64_t wanted = *call.correlationData;
    if (wanted != 0) *static_cast<int*>(call.functionReturnValue) = static_cast<int>(wanted - 1);
    return;
  }
  *call.correlationData = 0;
  const std::optional<LibraryFault> fault = injection->faults.enter(plain_name(call.functionName), injection->rank);
  if (!fault) return;
  begin(*fault, stream_of(domain, id, call));
  if (fault->kind == LibraryFault::Kind::fail) {
    *call.correlationData = static_cast<std::uint64_t>(fault->result.value_or(kUnknownError)) + 1;
  }
}

void CUPTIAPI callback(void*, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* data) {
  if (is_inside) return;
  is_inside = true;
  on_call(domain, id, *static_cast<const CUpti_CallbackData*>(data));
  is_inside = false;
}

void* open_cupti() {
  const std::string given = variable("HOLDFAST_CUPTI", "");
  const std::string versioned = "libcupti.so." + std::to_string(CUDART_VERSION / 1000);
  for (const std::string& name : {given, versioned, std::string("libcupti.so")}) {
    if (name.empty()) continue;
    if (void* const library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_GLOBAL)) return library;
  }
  throw std::runtime_error(std::string("CUPTI cannot be loaded: ") + ::dlerror());
}

template <class Function>
Function find(void* library, const char* name) {
  const auto function = reinterpret_cast<Function>(::dlsym(library, name));
  if (function == nullptr) throw std::runtime_error(std::string("CUPTI has no function ") + name);
  return function;
}

void require(CUptiResult result, const char* call) {
  if (result == CUPTI_SUCCESS) return;
  throw std::runtime_error(std::string(call) + " failed with result " + std::to_string(static_cast<int>(result)));
}

void subscribe() {
  void* const cupti = open_cupti();
  const auto cupti_subscribe = find<decltype(&cuptiSubscribe)>(cupti, "cuptiSubscribe");
  const auto enable = find<decltype(&cuptiEnableDomain)>(cupti, "cuptiEnableDomain");
  CUpti_SubscriberHandle subscriber{};
  require(cupti_subscribe(&subscriber, reinterpret_cast<CUpti_CallbackFunc>(callback), nullptr), "cuptiSubscribe");
  require(enable(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API), "cuptiEnableDomain");
  require(enable(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API), "cuptiEnableDomain");
}

}  // namespace

// The driver's name for it.
extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  try {
    injection = new Injection;
    subscribe();
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "libholdfast_cuda_faults.so: %s\n", failure.what());
  }
  return 1;
}
