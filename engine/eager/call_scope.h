// For functions made of several ops: while one lives, all of them report the user's call of the function.
#pragma once

#include <tapedeck/engine/eager/thread_state.h>

namespace tapedeck {

class CallScope {
 public:
  explicit CallScope(Site call) : site_(thread_state().site, thread_state().site.line ? thread_state().site : call) {}

 private:
  Scoped<Site> site_;  // a module's call around this one is the user's
};

}  // namespace tapedeck
