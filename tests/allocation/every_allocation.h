// Runs one call again and again, and lets another allocation fail each time.
//
// A call in which an allocation fails must throw std::bad_alloc or an Error, or do without that memory. After it the same call,
// on the same thread, must give what it gives undisturbed, and no byte may be lost: no more bytes are live than after an
// undisturbed call.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace tapedeck::test {

struct EveryAllocation {
  std::string name;             // for the printed counts
  bool own_threads = false;     // each round has a thread of its own, which begins with empty caches; else all share one
  bool once_per_stack = false;  // one allocation for each call stack fails, not every one
  std::size_t every = 1;        // of these, every n-th
};

// `call` returns the bits of its results as a text. All that it made is gone when it has returned.
void fail_every_allocation(const EveryAllocation& how, const std::function<std::string()>& call);

}  // namespace tapedeck::test
