#pragma once

// A libnccl for machines without a GPU: ranks are threads of one process, device memory is the host's, and a stream is
// a FakeStream. What it does wrong is said by rules, separated by spaces:
//
//   version=22809              what ncclGetVersion says
//   fail=ncclSend:3            the function returns this result
//   hang=ncclCommAbort         the function does not return
//   busy=ncclGroupEnd          the call returns that it is in progress, and stays so
//   async=6                    ncclCommGetAsyncError tells of this error, once the communicator is connected, and calls
//                              that queue something fail with it
//   kernel=stuck               what runs on a stream does not end, even when it is aborted
//
// A rule that ends with "@1" is for rank 1 alone. What hangs or is stuck goes on when the rules no longer say so. The
// rules at the start are those in HOLDFAST_FAKE_NCCL.
//
// Of itself it is as strict as NCCL is, or stricter:
//
// - A call before the communicator's previous one has succeeded is an invalid argument, and so is every later one.
//   Aborts, revokes and ncclCommGetAsyncError are let through.
// - When one call of a group fails, nothing of it is queued.
// - What sends ends when all of it is received: ranks that first send to each other, each call by itself, wait for
//   ever. Within a group everything goes on at once. What an abort or a revoke stops is never received.
// - A count that is not the sender's ends the process, with a sentence on standard error.

extern "C" {
// Replaces the rules, and forgets what was called.
void fake_nccl_obey(const char* rules);
// How often rank `rank` called the function since then; -1 for all ranks, and for functions of no communicator.
int fake_nccl_calls(const char* function, int rank);
// Works of streams that have begun and not ended.
int fake_nccl_running();
// Works of this rank that have ended since the rules were replaced: one for each group of calls.
int fake_nccl_ended(int rank);
}
