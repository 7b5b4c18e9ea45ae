// The threads of one replay: a TBB arena of its own, and tasks that are plain numbers.
//
// All of the replay that touches TBB is in here. Kernels that open parallel loops of their own (kernels/parallel.h) run inside
// the same arena: a replay never uses more threads than it was given, and one thread means one.
#pragma once

#include <cstdint>
#include <memory>

namespace tapedeck::replay {

class Threads {
 public:
  // A task: must not throw.
  using Task = void (*)(void* context, std::int32_t item);

  explicit Threads(int count);  // 0 = thread_count() (engine/eager/threads.h)
  ~Threads();
  int count() const;
  int index() const;  // from inside a task: the number of the thread that runs it, 0..count-1

  // Runs task(context, first) inside the arena. Returns when this task and all tasks that were spawned from it, directly or
  // not, are done. One run at a time.
  void run(Task task, void* context, std::int32_t first);
  // From inside a task: task(context, item) may now run, on any free thread of the replay. Returns false if there is no memory
  // for one more task: then the caller runs the item itself.
  [[nodiscard]] bool spawn(std::int32_t item) noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tapedeck::replay
