// A thread that works for many seconds, such as a search, gives way to the thread that draws.
#pragma once

#include <functional>

namespace tapedeck::viewer {

// Runs `work`, whose searches leave a processor to the thread that draws. With one or two processors they run on the calling
// thread alone, and its priority is lowered for good: of a processor that another thread wants as well, it takes a quarter.
// Throws the exception of `work`.
void give_way(const std::function<void()>& work);

}  // namespace tapedeck::viewer
