#pragma once

// A libnccl for machines without a GPU: ranks are threads of one process, device memory is the host's, and a stream is
// a FakeStream. What it does wrong is said by rules, separated by spaces:
//
//   version=22809              what ncclGetVersion says
//   fail=ncclSend:3            the function returns this result
//   hang=ncclCommAbort         the function does not return
//   busy=ncclGroupEnd          the call returns that it is in progress, and stays so
//   async=6                    ncclCommGetAsyncError tells of this error, once the communicator is connected
//   kernel=stuck               what runs on a stream does not end, even when it is aborted
//
// A rule that ends with "@1" is for rank 1 alone. What hangs or is stuck goes on when the rules no longer say so. The
// rules at the start are those in HOLDFAST_FAKE_NCCL.

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
