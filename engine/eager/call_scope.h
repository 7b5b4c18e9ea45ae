// For functions that are made of several ops. As long as a CallScope lives, all ops of the thread report the user's call of
// the function as their site.
#pragma once

#include <tapedeck/engine/eager/thread_state.h>

namespace tapedeck {

class CallScope {
 public:
  explicit CallScope(Site call) : site_(thread_state().site, thread_state().site.line ? thread_state().site : call) {}

 private:
  Scoped<Site> site_;  // the outermost scope wins: if a module's call is already set, it is the user's call
};

}  // namespace tapedeck
