// TBB's task_group in an arena of the replay. It was measured against flow::graph, loops level by level, and spinning workers.
// It costs some 20 ns for each task. When another program takes a core it slows down little, and spinning workers slow down
// much.
//
// The group has an isolated context. So a replay runs to its end even if it was started from a task that is cancelled.
#include <tapedeck/capture/replay/segments/threads.h>

#include <tapedeck/engine/eager/threads.h>
#include <tapedeck/kernels/parallel.h>

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/info.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>

#include <optional>

namespace tapedeck::replay {

// TBB before 2022 counts a task before it takes memory for it. When there is no memory, nothing takes the task off the count,
// and wait() would never return. Later versions count a task once it is made.
class TaskGroup : public tbb::task_group {
 public:
  using tbb::task_group::task_group;

  template <class F>
  bool try_run(const F& f) noexcept {
    try {
      run(f);
      return true;
    } catch (...) {
      forget_task(*this);
      return false;
    }
  }

 private:
  template <class Self>
  static void forget_task(Self& self) noexcept {
    if constexpr (requires { self.m_wait_ctx; }) self.m_wait_ctx.release();
  }
};

struct Threads::Impl {
  explicit Impl(int n) : count(n), arena(n), context(tbb::task_group_context::isolated), group(context) {
    // TBB starts no more threads than the machine has, unless told so.
    if (n > tbb::info::default_concurrency())
      more.emplace(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(n));
  }

  int count;
  std::optional<tbb::global_control> more;
  tbb::task_arena arena;
  tbb::task_group_context context;
  TaskGroup group;
  Task task = nullptr;
  void* task_context = nullptr;
};

Threads::Threads(int count) : impl_(std::make_unique<Impl>(count > 0 ? count : thread_count())) {
  impl_->arena.initialize();  // so that no run pays for it
}

Threads::~Threads() = default;

int Threads::count() const { return impl_->count; }

int Threads::index() const {
  const int at = tbb::this_task_arena::current_thread_index();
  return at < 0 || at >= impl_->count ? 0 : at;
}

void Threads::run(Task task, void* context, std::int32_t first) {
  Impl& self = *impl_;
  self.task = task;
  self.task_context = context;
  self.arena.execute([&self, first] {
    const kernels::PlacedScope placed;
    self.task(self.task_context, first);
    self.group.wait();
  });
}

bool Threads::spawn(std::int32_t item) noexcept {
  Impl* self = impl_.get();
  return self->group.try_run([self, item] {
    const kernels::PlacedScope placed;
    self->task(self->task_context, item);
  });
}

}  // namespace tapedeck::replay
