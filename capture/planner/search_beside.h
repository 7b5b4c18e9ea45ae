// Searches beside a thread that must not wait, such as the thread of a window that draws.
#pragma once

#include <tapedeck/kernels/export.h>

#include <functional>

namespace tapedeck TAPEDECK_API {

// How many threads search_beside() uses: one fewer than the processors that this process may use, and at least one.
int threads_beside();

// Runs `work`, whose searches (make_plan, PlanSearch) run their loops on threads_beside() threads, the calling thread among
// them. Plans are the same. Throws the exception of `work`. Thread safe.
void search_beside(const std::function<void()>& work);

}  // namespace TAPEDECK_API
