#include <tapedeck/engine/eager/recorder.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/eager/thread_state.h>

#include <fmt/format.h>

namespace tapedeck {

namespace {
thread_local ThreadState* current_state = nullptr;
struct StateOwner {
  ~StateOwner() {
    ThreadState* state = current_state;
    if (state) state->random.state = Tensor();
    current_state = nullptr;  // tensors that are destroyed later find no tape and do not report to it
    delete state;
  }
};
}  // namespace

ThreadState::ThreadState() : own(std::make_unique<Recorder>(false)) { tape = own.get(); }
ThreadState::~ThreadState() = default;

ThreadState& thread_state() {
  if (!current_state) {
    static thread_local StateOwner owner;
    (void)owner;
    current_state = new ThreadState;
  }
  return *current_state;
}

ThreadState* thread_state_if_any() noexcept { return current_state; }

DrawPath::DrawPath() {
  ThreadState& state = thread_state();
  rng_state();  // a new seed sets the numbers back
  const std::int32_t k = state.draws[state.path.id()]++;
  text_ = fmt::format("{}#{}", state.path.view(), k);
}

}  // namespace tapedeck
