// The number of threads that eager ops and replays use.
#pragma once

#include <tapedeck/engine/ir/error.h>
#include <tapedeck/kernels/export.h>

namespace tapedeck TAPEDECK_API {

// The loops of eager ops run on `threads` threads from now on, and so do executors and captured steps that are made later and
// are not given a number of their own. 0 stands for the logical cores that this process may use, which is also the number at
// the start, unless TAPEDECK_THREADS in the environment says another. The bits of results do not depend on the number.
// UsageError if the number is negative or above 1024. Thread safe.
void set_threads(int threads, Site site = {__builtin_FILE(), __builtin_LINE()});
int thread_count();

}  // namespace TAPEDECK_API
