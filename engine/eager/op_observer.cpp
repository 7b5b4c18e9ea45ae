#include <tapedeck/engine/eager/op_observer.h>

#include <tapedeck/engine/eager/recorder.h>
#include <tapedeck/engine/eager/thread_state.h>

namespace tapedeck::detail {

constinit std::atomic<OpObserver*> observer_of_ops{nullptr};

void tell_observer(OpObserver& observer, const Op& op, std::span<TensorImpl* const> results, Site site, bool in_place) {
  const ThreadState& state = thread_state();
  Site place = state.site.line ? state.site : site;
  if (state.twin != kNone && static_cast<std::size_t>(state.twin) < state.tape->notes.size())
    place = state.tape->notes[static_cast<std::size_t>(state.twin)].site;
  observer.ran({op, results, place, state.path, state.phase, in_place});
}

}  // namespace tapedeck::detail
