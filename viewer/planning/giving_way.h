// A thread that works for many seconds, such as a search, gives way to the thread that draws.
#pragma once

#include <tapedeck/capture/planner/search_alone.h>

namespace tapedeck::viewer {

// Lowers the priority of the thread that makes the object, for good: of a processor that another thread wants as well, it takes
// a quarter. While the object lives, searches of the thread run on it alone, because threads that TBB starts for a search would
// have its priority, and a measured replay may use them later.
class GivingWay {
 public:
  GivingWay();

 private:
  SearchAlone alone_;
};

}  // namespace tapedeck::viewer
