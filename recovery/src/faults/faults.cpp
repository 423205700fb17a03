// A fault is marked as fired on stable storage before it strikes. Otherwise the recovered run would meet it again and
// never get further. docs/decisions/testing.md

#include "holdfast/recovery/faults.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <map>
#include <mutex>
#include <sstream>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "faults/fault_kinds.h"
#include "holdfast/base/digest.h"
#include "holdfast/base/error.h"
#include "holdfast/base/shared_memory.h"

namespace holdfast::recovery {
namespace {

constexpr std::int64_t kForEver = std::numeric_limits<std::int64_t>::max();

void sync_folder(const std::string& path) {
  const FileDescriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.is_open() || ::fsync(folder.value()) != 0) throw system_error(errno, fmt::format("cannot sync {}", path));
}

bool acts_by(const Fault& fault, FaultMeans means) {
  return row_of(fault.kind).means == means;
}

int error_number_of(FaultKind kind) {
  return kind == FaultKind::full_disk ? ENOSPC : EIO;
}

}  // namespace

// Semicolons separate faults, since a specification has commas.
std::vector<std::string> faults_of_environment() {
  std::vector<std::string> faults;
  const char* text = std::getenv(kFaultsVariable);
  std::istringstream rest(text == nullptr ? "" : text);
  for (std::string fault; std::getline(rest, fault, ';');) {
    if (!fault.empty()) faults.push_back(fault);
  }
  return faults;
}

// Rank and generation, and faults that last.
struct Faults::Course {
  // Written by the thread that trains when a generation begins, and read by the thread that writes savepoints.
  std::atomic<int> rank;
  std::atomic<int> generation;

  std::mutex mutex;
  std::map<std::size_t, std::int64_t> slow_until;          // by index of the fault; guarded by mutex
  std::map<std::size_t, std::int64_t> operations_to_fail;  // by index of the fault; guarded by mutex
};

Faults::Faults(std::vector<Fault> faults, Process process)
    : faults_(std::move(faults)), process_(std::move(process)), course_(std::make_unique<Course>()) {
  move_to(process_.rank, process_.generation);
}

Faults::~Faults() = default;
Faults::Faults(Faults&&) noexcept = default;
Faults& Faults::operator=(Faults&&) noexcept = default;

void Faults::move_to(int rank, int generation) {
  course_->rank = rank;
  course_->generation = generation;
}

// Several faults may be due at once. A fault that returns or throws nothing lets the next one strike.
void Faults::reach(FaultPhase phase, std::int64_t step) const {
  for (std::size_t index = 0; index < faults_.size(); ++index) {
    const Fault& fault = faults_[index];
    if (!acts_by(fault, FaultMeans::process) || !is_due(fault, phase, step) || !mark_as_fired(index)) continue;
    row_of(fault.kind).strike(fault, process_);
  }
}

std::optional<Corruption> Faults::corruption(FaultPhase phase, std::int64_t step) const {
  for (std::size_t index = 0; index < faults_.size(); ++index) {
    const Fault& fault = faults_[index];
    if (!acts_by(fault, FaultMeans::state) || !is_due(fault, phase, step) || !mark_as_fired(index)) continue;
    return Corruption{.target = fault.target, .is_nan = fault.kind == FaultKind::nan, .seed = fault.seed};
  }
  return std::nullopt;
}

bool Faults::may_corrupt(FaultPhase phase, std::int64_t step) const {
  return std::any_of(faults_.begin(), faults_.end(), [&](const Fault& fault) {
    // The mark is not set here, because asking must not use the fault up.
    return acts_by(fault, FaultMeans::state) && is_due(fault, phase, step);
  });
}

double Faults::slowdown(std::int64_t step) const {
  double factor = 1;
  const std::scoped_lock lock(course_->mutex);
  for (std::size_t index = 0; index < faults_.size(); ++index) {
    const Fault& fault = faults_[index];
    if (!acts_by(fault, FaultMeans::pace)) continue;
    // Only the process that set the mark becomes slow. Its successor is quick, so replacing it can be seen to help.
    if (is_due(fault, FaultPhase::forward, step) && mark_as_fired(index)) {
      const std::int64_t count = fault.count.value_or(kForEver);
      // Without overflow for a count that is nearly endless.
      course_->slow_until[index] = count > kForEver - step ? kForEver : step + count;
    }
    const auto until = course_->slow_until.find(index);
    if (until != course_->slow_until.end() && step < until->second) factor *= fault.factor;
  }
  return factor;
}

std::optional<int> Faults::file_failure(std::optional<FaultPhase> phase, std::int64_t step, FileNeed need) const {
  const std::scoped_lock lock(course_->mutex);
  std::optional<int> error_number;
  for (std::size_t index = 0; index < faults_.size(); ++index) {
    const Fault& fault = faults_[index];
    if (!acts_by(fault, FaultMeans::files)) continue;
    if (phase && is_due(fault, *phase, step) && mark_as_fired(index)) {
      course_->operations_to_fail[index] = fault.count.value_or(kForEver);
    }
    const auto left = course_->operations_to_fail.find(index);
    if (left == course_->operations_to_fail.end() || left->second == 0 || error_number) continue;
    // On a full disk, operations without need of space succeed and do not use up the count.
    if (fault.kind == FaultKind::full_disk && need == FileNeed::none) continue;
    if (left->second != kForEver) --left->second;
    error_number = error_number_of(fault.kind);
  }
  return error_number;
}

bool Faults::is_due(const Fault& fault, FaultPhase phase, std::int64_t step) const {
  const int generation = course_->generation;
  // What the specification leaves open fits every step and every generation.
  return fault.rank == course_->rank && fault.phase == phase && fault.step.value_or(step) == step &&
         fault.generation.value_or(generation) == generation;
}

bool Faults::mark_as_fired(std::size_t index) const {
  const std::string folder = process_.run_directory + "/faults";
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw system_error(error.value(), fmt::format("cannot create {}", folder));
  // The index tells equal specifications apart. The hash keeps marks of another plan from hiding the faults of this
  // one.
  const std::string hash = digest(std::as_bytes(std::span(faults_[index].specification))).hex().substr(0, 16);
  const std::string path = fmt::format("{}/{}-{}.fired", folder, index, hash);
  // O_EXCL lets one of two processes of the same rank strike, even if both get here at the same time.
  const FileDescriptor mark(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!mark.is_open() && errno == EEXIST) return false;
  if (!mark.is_open() || ::fsync(mark.value()) != 0) {
    throw system_error(errno, fmt::format("cannot write the mark {}", path));
  }
  sync_folder(folder);
  return true;
}

}  // namespace holdfast::recovery
