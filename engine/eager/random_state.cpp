// The random state of each thread: a tensor i64[2] with the seed of the thread's stream and the step. It is a tensor so that a
// captured step can have it as its state.
//
//       manual_seed(7)      process: seed 7, seeding 3                this thread: follows at once, as the first in the order
//       a draw elsewhere    thread: follows seeding 2, so it is late  ->  its state is written in place: stream seed, step 0
//
// A thread writes its own state only, so a new seed needs no lock in the threads that draw.
#include <tapedeck/engine/eager/dispatch.h>
#include <tapedeck/engine/eager/eviction.h>
#include <tapedeck/engine/eager/host_reads.h>
#include <tapedeck/engine/eager/op_observer.h>
#include <tapedeck/engine/eager/random_position.h>
#include <tapedeck/engine/eager/recorder.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/ir/core_ops.h>
#include <tapedeck/kernels/philox.h>
#include <tapedeck/kernels/thread_limit.h>

#include <fmt/format.h>

#include <atomic>
#include <mutex>

namespace tapedeck {

namespace {

// What gave a stream its number. The values go into the seeds of streams.
enum class NumberedBy : std::uint64_t { caller = 1, order = 2, worker = 3 };

struct StreamNumber {
  NumberedBy by;
  std::uint64_t number;
};

std::uint64_t stream_seed(std::uint64_t seed, StreamNumber stream) {
  if (stream.number == 0) return seed;
  using kernels::splitmix64;
  return splitmix64(splitmix64(splitmix64(seed) ^ static_cast<std::uint64_t>(stream.by)) ^ stream.number);
}

// The seed of the process.
class ProcessSeed {
 public:
  struct Followed {
    std::uint64_t seeding, stream_seed;
    Site site;
  };

  std::uint64_t seeding() const { return seeding_.load(std::memory_order_acquire); }

  // Sets the seed; the calling thread follows it as the first in the order.
  Followed set(std::uint64_t seed, const RandomStream& caller, Site site) {
    const std::lock_guard lock(mutex_);
    seed_ = seed;
    site_ = site;
    in_order_ = 0;
    seeding_.fetch_add(1, std::memory_order_release);
    return follow_locked(caller);
  }

  Followed follow(const RandomStream& stream) {
    const std::lock_guard lock(mutex_);
    return follow_locked(stream);
  }

 private:
  // The seed of this thread's stream. A thread without a number of its own takes the next one in the order.
  Followed follow_locked(const RandomStream& stream) {
    const auto place = static_cast<std::uint64_t>(kernels::worker_place());
    StreamNumber number{NumberedBy::worker, place};
    if (stream.given)
      number = {NumberedBy::caller, *stream.given};
    else if (place == 0)
      number = {NumberedBy::order, in_order_++};
    return {seeding_.load(std::memory_order_relaxed), stream_seed(seed_, number), site_};
  }

  std::mutex mutex_;
  std::atomic<std::uint64_t> seeding_{1};
  std::uint64_t seed_ = 42, in_order_ = 0;
  Site site_;
};

ProcessSeed& process_seed() {
  static ProcessSeed seed;
  return seed;
}

Tensor make_rng() {
  const std::int64_t raw[2] = {0, 0};
  Tensor rng = from_bytes({DType::i64, {2}}, raw);
  rng.name("rng").role(Role::rng);
  return rng;
}

// Lets the thread draw from the stream that `follow` gives, from step zero. The state is written in place. So a captured step
// that holds this tensor as its state also draws from the new seed. The memory comes first: a thread that gets none has
// followed no seed and taken no number in the order.
template <class Follow>
void begin_stream(ThreadState& state, const Follow& follow) {
  const bool first = !state.random.state.defined();
  Tensor rng = first ? make_rng() : state.random.state;
  const ProcessSeed::Followed now = follow();
  auto* raw = static_cast<std::int64_t*>(detail::bytes_to_write(*rng.impl(), now.site));
  raw[0] = static_cast<std::int64_t>(now.stream_seed);
  raw[1] = 0;
  state.random.state = std::move(rng);
  state.random.seeding = now.seeding;
  state.draws.clear();
}

// Whether a capture or a nested tape is open in which the thread may already have drawn. Then the state is not written now: the
// write would not be on the tape, so a replay could not repeat it. The thread follows the new seed after the capture.
bool inside_step(const ThreadState& state) {
  if (!state.random.state.defined() || (state.tape->capturing && passes_everything(*state.tape))) return false;
  return state.tape->capturing || state.tape->nested;
}

void refuse_inside_capture(const char* what, Site site) {
  const Recorder& tape = *thread_state().tape;
  if (tape.capturing)
    refuse_in_capture(tape, error_text(what, "re-seeds inside a capture, which a replay could not repeat", site));
}

}  // namespace

const Tensor& rng_state() {
  ThreadState& state = thread_state();
  if (state.pass_rng.defined()) return state.pass_rng;
  if (state.random.seeding != process_seed().seeding() && !inside_step(state))
    begin_stream(state, [&] { return process_seed().follow(state.random); });
  return state.random.state;
}

void manual_seed(std::uint64_t seed, Site site) {
  refuse_inside_capture("manual_seed", site);
  ThreadState& state = thread_state();
  begin_stream(state, [&] { return process_seed().set(seed, state.random, site); });
}

void use_random_stream(std::uint64_t number, Site site) {
  refuse_inside_capture("use_random_stream", site);
  ThreadState& state = thread_state();
  begin_stream(state, [&] {
    state.random.given = number;
    return process_seed().follow(state.random);
  });
}

RandomPosition random_position() {
  const auto raw = rng_state().to_vector<std::int64_t>();
  RandomPosition position{raw[0], raw[1], {}};
  for (const auto& [path, count] : thread_state().draws)  // the key is the text of an interned name
    position.draws[path ? *static_cast<const std::string*>(path) : std::string()] = count;
  return position;
}

void set_random_position(const RandomPosition& position, Site site) {
  const Recorder& tape = *thread_state().tape;
  if (tape.capturing)
    refuse_in_capture(tape, error_text("set_random_position", "changes the random state inside a capture", site));
  Tensor rng = rng_state();  // follows the seed of the process first
  auto* raw = static_cast<std::int64_t*>(detail::bytes_to_write(*rng.impl(), site));
  raw[0] = position.seed;
  raw[1] = position.step;
  auto& draws = thread_state().draws;
  draws.clear();
  for (const auto& [path, count] : position.draws) draws[path.empty() ? nullptr : Name(path).id()] = count;
}

void next_step(Site site) {
  ThreadState& state = thread_state();
  const NoGrad no_grad;
  Scoped<Phase> phase(state.phase, Phase::update);
  Scoped<Name> path(state.path, Name());
  const Tensor rng[1] = {rng_state()};
  apply_in_place(ops::rng_next, rng, nullptr, site);
  state.draws.clear();
  if (OpObserver* const observer = op_observer()) observer->stepped();
}

}  // namespace tapedeck
