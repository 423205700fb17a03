// Makes chosen calls of CUDA go wrong in any program, without a change to it. When the driver is initialised, it loads
// the library that CUDA_INJECTION64_PATH names. CUPTI then calls this library at every call of CUDA:
//
//   CUDA_INJECTION64_PATH=.../libholdfast_cuda_faults.so
//   HOLDFAST_CUDA_FAULTS=function=cudaMalloc,rank=1,call=12,fault=fail,result=2 ./train
//
// Functions have the names of the runtime ("cudaMemcpyAsync"; "cudaLaunchKernel" includes <<<>>>) or of the driver
// ("cuLaunchKernel"); * means all of both. A call that fails was made all the same, so what it allocates is lost. A
// failed call of the runtime also becomes the thread's last error, since <<<>>> has no other result.
//
// fault_rules.h describes the rules. If they cannot be read, or CUPTI cannot be loaded, a line on standard error says
// so, and no call fails. CUPTI is libcupti.so of this CUDA, or the library that HOLDFAST_CUPTI names.

#include <cuda_runtime.h>
#include <cupti.h>
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>

#include "fault_rules.h"

namespace {

using holdfast::resilience::LibraryFault;
using holdfast::resilience::LibraryFaults;
using holdfast::resilience::plain_name;
using holdfast::resilience::variable;

constexpr int kUnknownError = 999;  // in the runtime and in the driver

__global__ void trap_kernel() {
  __trap();
}

// Always zero, which the compiler cannot know. It is not on the heap: while a stream is recorded, no memory may be
// allocated.
__device__ volatile int is_over;

// This kernel ends only with its process.
__global__ void spin_kernel() {
  while (is_over == 0) {
  }
}

// Never destroyed, since calls may be made until the process ends.
struct Injection {
  LibraryFaults faults{variable("HOLDFAST_CUDA_FAULTS", "")};
  int rank = holdfast::resilience::started_rank();
};
Injection* injection = nullptr;

// Set while the injection itself makes calls, which have no faults.
thread_local bool is_inside = false;

// The error of a failed call, for the thread's next cudaGetLastError().
thread_local int last_error = 0;

template <class Parameters>
cudaStream_t stream_in(const void* parameters) {
  const auto& given = *static_cast<const Parameters*>(parameters);
  if constexpr (requires { given.config->stream; }) {
    return given.config->stream;
  } else if constexpr (requires { given.config->hStream; }) {
    return given.config->hStream;
  } else if constexpr (requires { given.hStream; }) {
    return given.hStream;
  } else {
    return given.stream;
  }
}

struct StreamPlace {
  const char* function;
  cudaStream_t (*stream_in)(const void* parameters);
};

// "_ptsz" functions have the same layout of parameters. So has __cudaLaunchKernel(), whose first pointer only has
// another type than that of cudaLaunchKernel().
constexpr StreamPlace kStreamPlaces[] = {
    {"cudaLaunchKernel", stream_in<cudaLaunchKernel_v7000_params>},
    {"cudaLaunchKernelExC", stream_in<cudaLaunchKernelExC_v11060_params>},
    {"cudaGraphLaunch", stream_in<cudaGraphLaunch_v10000_params>},
    {"cudaMemcpyAsync", stream_in<cudaMemcpyAsync_v3020_params>},
    {"cudaMemsetAsync", stream_in<cudaMemsetAsync_v3020_params>},
    {"cudaEventRecord", stream_in<cudaEventRecord_v3020_params>},
    {"cudaStreamWaitEvent", stream_in<cudaStreamWaitEvent_v3020_params>},
    {"cuLaunchKernel", stream_in<cuLaunchKernel_params>},
    {"cuLaunchKernelEx", stream_in<cuLaunchKernelEx_params>},
    {"cuGraphLaunch", stream_in<cuGraphLaunch_params>},
};

// The stream of a call; the default stream for calls that have none.
cudaStream_t stream_of(const std::string& function, const CUpti_CallbackData& call) {
  for (const StreamPlace& place : kStreamPlaces) {
    if (function == place.function) return place.stream_in(call.functionParams);
  }
  return nullptr;
}

// A kernel is loaded at its first start. A thread that records a stream may do this only in relaxed capture mode.
void start(void (*kernel)(), cudaStream_t stream) {
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  static_cast<void>(cudaThreadExchangeStreamCaptureMode(&mode));
  kernel<<<1, 1, 0, stream>>>();
  const cudaError_t status = cudaGetLastError();
  static_cast<void>(cudaThreadExchangeStreamCaptureMode(&mode));
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "libholdfast_cuda_faults.so: cannot start the kernel of a fault: %s\n",
               cudaGetErrorString(status));
}

void begin(const LibraryFault& fault, cudaStream_t stream) {
  switch (fault.kind) {
    case LibraryFault::Kind::hang:
      for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
    case LibraryFault::Kind::slow:
      std::this_thread::sleep_for(fault.delay);
      break;
    case LibraryFault::Kind::trap:
      start(trap_kernel, stream);
      break;
    case LibraryFault::Kind::spin:
      start(spin_kernel, stream);
      break;
    case LibraryFault::Kind::fail:
    case LibraryFault::Kind::report:
      break;
  }
}

// A call that is to fail carries its future result, plus one, from its first callback to its second.
void end(bool is_of_runtime, const std::string& function, const CUpti_CallbackData& call) {
  int& result = *static_cast<int*>(call.functionReturnValue);
  const bool takes = function == "cudaGetLastError";
  if (*call.correlationData != 0) {
    result = static_cast<int>(*call.correlationData - 1);
    if (is_of_runtime && !takes) last_error = result;
  } else if (is_of_runtime && (takes || function == "cudaPeekAtLastError") && result == cudaSuccess) {
    result = last_error;
  }
  if (is_of_runtime && takes) last_error = 0;
}

void on_call(CUpti_CallbackDomain domain, const CUpti_CallbackData& call) {
  const std::string function = plain_name(call.functionName == nullptr ? "" : call.functionName);
  if (call.callbackSite == CUPTI_API_EXIT) return end(domain == CUPTI_CB_DOMAIN_RUNTIME_API, function, call);
  *call.correlationData = 0;
  const std::optional<LibraryFault> fault = injection->faults.enter(function, injection->rank);
  if (!fault) return;
  begin(*fault, stream_of(function, call));
  if (fault->kind == LibraryFault::Kind::fail) {
    *call.correlationData = static_cast<std::uint64_t>(fault->result.value_or(kUnknownError)) + 1;
  }
}

void CUPTIAPI callback(void*, CUpti_CallbackDomain domain, CUpti_CallbackId, const void* data) {
  if (is_inside) return;
  is_inside = true;
  on_call(domain, *static_cast<const CUpti_CallbackData*>(data));
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

// The driver looks for this name.
extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  try {
    injection = new Injection;
    subscribe();
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "libholdfast_cuda_faults.so: %s\n", failure.what());
  }
  return 1;
}
