// The arena of the loops that begin on a thread which no loop, replay or search runs on. Only parallel.cpp and thread_limit.cpp
// use this header, because it names TBB.
#pragma once

#include <oneapi/tbb/task_arena.h>

namespace tapedeck::kernels {

// The arena for the limit of set_thread_limit(). Null: TBB's own arena.
tbb::task_arena* arena_of_limit();

}  // namespace tapedeck::kernels
