// A debugger follows one process, and a watchdog would take a stopped one for hung. So the training function runs here
// as the only replica. It writes nothing, because the run must stay as it is. docs/decisions/runs.md

#include "train/supervise/supervise_alone.h"

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <system_error>

#include <fmt/format.h>

#include "collective/memory/memory_meeting.h"
#include "compute/cublas_workspace.h"
#include "holdfast/base/cores.h"
#include "holdfast/base/error.h"
#include "holdfast/base/log.h"
#include "holdfast/recovery/launch.h"
#include "holdfast/recovery/run_lock.h"
#include "holdfast/recovery/watchdog.h"
#include "train/context/devices.h"
#include "train/context/replica_context.h"
#include "train/state/run_results.h"
#include "train/supervise/run_choices.h"

namespace holdfast {
namespace {

constexpr const char* kAloneVariable = "HOLDFAST_ALONE";
constexpr std::chrono::seconds kAloneLockTimeout(2);

// Choices that depend on the number of replicas are made for the number that the run would have. Then this process
// computes all shards, with the same bits.
std::shared_ptr<Replica::Context> context_alone(const SuperviseOptions& options) {
  const ReplicaDevices devices = devices_of(options);
  const int replicas = devices.replicas == 0 ? core_count() : devices.replicas;
  const RunChoices choices = settle_choices(options, replicas);
  check_numbers(choices, replicas, recovery::kMaxReplicas);
  auto context = std::make_shared<Replica::Context>();
  context->device = devices.are_cuda() ? devices.names.front() : "cpu";
  // As supervise() does for its replicas, unless the user has chosen. Before CUDA starts.
  if (devices.are_cuda()) ::setenv(compute::kCublasWorkspaceVariable, compute::kCublasWorkspace, 0);
  context->precision = options.precision;
  context->seed = choices.seed;
  context->shards = choices.shards;
  context->threads_per_shard = choices.threads_per_shard;
  context->reduction = choices.reduction;
  context->first_replicas = choices.first_replicas;
  context->run_directory = options.run_directory;
  context->savepoint_copies = options.savepoint_copies;
  context->accept_other_arithmetic = options.accept_other_arithmetic;
  // Neither savepoints nor records, so that the run stays as it is.
  context->writes_files = false;
  context->cores = core_count();
  context->meeting = MemoryMeeting::alone();
  return context;
}

}  // namespace

bool is_alone_asked_for(const std::optional<bool>& option) {
  if (option) return *option;
  const char* const variable = std::getenv(kAloneVariable);
  const std::string value = variable == nullptr ? "" : variable;
  if (value.empty() || value == "0") return false;
  if (value == "1") return true;
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("the environment has {}={}, where 1 or 0 is expected; correct or unset it", kAloneVariable, value));
}

int train_alone(const SuperviseOptions& options, const std::function<void(Replica&)>& train) {
  // A directory that does not exist needs no lock, and is not created.
  // A watchdog that starts meanwhile would change what is read here.
  std::optional<FileDescriptor> lock;
  std::error_code error;
  // Held until the end of this function.
  if (std::filesystem::exists(options.run_directory, error)) {
    lock = recovery::lock_run_directory(options.run_directory, Deadline::after(kAloneLockTimeout));
  }
  if (!train) {
    throw Error(ErrorCode::invalid_argument,
                "training alone was asked for in a program without a training function, whose replicas are another "
                "program; ask for it in that program");
  }
  log(LogLevel::info,
      fmt::format("training alone in this process, for debugging: nothing is written to {}, and no watchdog runs",
                  options.run_directory));
  Replica replica(context_alone(options));
  train(replica);
  remember_results(*replica.shared_context());
  return 0;
}

}  // namespace holdfast
