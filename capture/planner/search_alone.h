// Searches that leave the other processors to other work.
#pragma once

#include <tapedeck/kernels/export.h>

#include <memory>

namespace tapedeck TAPEDECK_API {

// While an object of this class lives, the searches of its thread (make_plan, PlanSearch) run their loops on that thread alone.
// Plans are the same. A program uses it in a thread of low priority: the threads that TBB starts for a loop have the priority
// of the thread that ran the loop, and keep it for all later loops and replays.
class SearchAlone {
 public:
  SearchAlone();
  ~SearchAlone();
  SearchAlone(const SearchAlone&) = delete;

 private:
  struct Scope;
  std::unique_ptr<Scope> scope_;
};

}  // namespace TAPEDECK_API
