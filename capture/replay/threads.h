// The threads of one replay: a TBB arena of its own, and tasks that are plain numbers.
//
// Everything that touches TBB stands behind this door, so that executor.cpp holds the order of things and this file only the
// hand-over. Kernels that open parallel loops of their own (kernels/parallel.h) find themselves inside the same arena: a replay
// never uses more threads than it was given, and one thread means one.
#pragma once

#include <cstdint>
#include <memory>

namespace tapedeck::replay {

// How many threads a replay takes that is not told: the cores this process may run on.
int default_thread_count();

class Threads {
 public:
  // A task: must not throw.
  using Task = void (*)(void* context, std::int32_t item);

  explicit Threads(int count);  // 0 = as many as the machine has
  ~Threads();
  int count() const;
  int index() const;  // from inside a task: which of the threads runs it, 0..count-1

  // Runs task(context, first) inside the arena, and returns once it and every task spawned from it, directly or not, is done.
  // One run at a time.
  void run(Task task, void* context, std::int32_t first);
  // From inside a task: task(context, item) may now run, on whatever thread of the arena is free.
  void spawn(std::int32_t item);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tapedeck::replay
