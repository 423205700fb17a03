#pragma once

// A libnccl for machines without a GPU. Ranks are threads of one process, device memory is host memory, and a stream is
// a FakeStream. Rules, separated by spaces, make it fail:
//
//   version=22809              the result of ncclGetVersion
//   fail=ncclSend:3            the function returns this result
//   hang=ncclCommAbort         the function does not return
//   busy=ncclGroupEnd          the call returns ncclInProgress and never completes
//   async=6                    once the communicator is connected, ncclCommGetAsyncError returns this error, and calls
//                              that queue work fail with it
//   kernel=stuck               work on a stream does not end, even if it is aborted
//
// A rule that ends with "@1" is for rank 1 alone. A call that hangs goes on when its rule is removed. The first rules
// are those in HOLDFAST_FAKE_NCCL.
//
// Without rules it is as strict as NCCL, or stricter:
//
// - A call before the communicator's previous one has succeeded is an invalid argument, and so is every later one.
//   Aborts, revokes and ncclCommGetAsyncError are always allowed.
// - If one call of a group fails, nothing of the group is queued.
// - A send ends when all of it is received. Two ranks that both send first, each outside of a group, hang. Within a
//   group all calls run at once. A message that an abort or a revoke stops is never received.
// - A count that differs from the sender's ends the process, with a message on standard error.

extern "C" {
// Replaces the rules and resets the counters of calls.
void fake_nccl_obey(const char* rules);
// How often `rank` has called the function since then. -1 counts all ranks, and functions without a communicator.
int fake_nccl_calls(const char* function, int rank);
// How many groups of calls run on streams right now.
int fake_nccl_running();
// How many groups of calls of this rank have ended since the rules were replaced.
int fake_nccl_ended(int rank);
}
