// The scope Capture: it opens a tape of its own on this thread, sorts declared inputs and outputs, and hands the tape to the
// freezer when it is finished. Nodes that depend on a count then move into one unplanned node (dynamic_region.h).
#include <tapedeck/capture/record/capture.h>

#include <tapedeck/capture/record/dynamic_region.h>
#include <tapedeck/capture/record/freeze_tape.h>
#include <tapedeck/engine/control/mask_counts.h>
#include <tapedeck/engine/eager/host_reads.h>
#include <tapedeck/engine/eager/recorder.h>
#include <tapedeck/engine/eager/settings.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/text/text.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>

namespace tapedeck {

namespace {

[[noreturn]] void fail(const std::string& message, Site site) { throw CaptureError(error_text("capture", message, site)); }

// Writes the output that TAPEDECK_DEBUG=2 and TAPEDECK_DUMP ask for.
void show(const Captured& captured) {
  const Settings s = settings_from_environment();
  if (s.debug >= 2)
    fmt::print(stderr, "capture {}: {} node{}\n{}", captured.graph.name.view(), captured.graph.node_count(),
               captured.graph.node_count() == 1 ? "" : "s", captured.report.to_string());
  if (s.dump.empty()) return;
  const std::string path = fmt::format("{}/{}.graph", s.dump, captured.graph.name.view());
  std::ofstream file(path);
  file << print(captured.graph);
  if (!file.flush()) fmt::print(stderr, "warning: cannot write {}\n", path);
}

}  // namespace

// ---- the scope ----

struct Capture::Impl {
  std::string name;
  Site site;
  Recorder tape{true};
  Recorder* before = nullptr;
  std::unordered_map<const void*, std::int32_t> draws_before;
  std::vector<Declared> inputs, outputs;
  bool gradients = false, draws_continue = false;
  bool fully_static = false, compares_counts = false, live_bytes = false;
  bool open = true;
  const std::chrono::steady_clock::time_point opened = std::chrono::steady_clock::now();

  void close() {
    if (!std::exchange(open, false)) return;
    ThreadState& state = thread_state();
    state.tape = before;
    take_dynamic_counts(tape.serial);
    // Draws from before the capture count, unless a new random step begins inside.
    if (!draws_continue && !stepped()) state.draws = std::move(draws_before);
  }

  bool stepped() const {
    return std::any_of(tape.outside.begin(), tape.outside.end(),
                       [](const Outside& o) { return o.tensor.role() == Role::rng && o.last != o.first; });
  }
};

Capture::Capture(std::string name, Site site) : impl_(std::make_unique<Impl>()) {
  ThreadState& state = thread_state();
  if (state.tape->capturing)
    refuse_in_capture(*state.tape, error_text("capture", "a capture is already open on this thread", site));
  if (state.region != kNone) fail("cannot open inside a checkpoint region", site);
  rng_state();  // follows a new seed now, because a capture cannot be seeded again
  impl_->name = std::move(name);
  impl_->site = site;
  impl_->tape.watch = watch_of_captures();
  impl_->before = std::exchange(state.tape, &impl_->tape);
  // Draws count from zero, as they do in every later step.
  impl_->draws_before = std::exchange(state.draws, {});
}

Capture::~Capture() {
  if (impl_) impl_->close();
}

Tensor Capture::input(const std::string& name, const Tensor& value) {
  if (!impl_->open) fail("is finished", impl_->site);
  if (!value.defined()) fail(fmt::format("input '{}' is undefined", name), impl_->site);
  for (const Declared& d : impl_->inputs)
    if (d.name == name) fail(fmt::format("input '{}' is declared twice", name), impl_->site);
  Tensor t = value;
  const bool again =
      std::any_of(impl_->inputs.begin(), impl_->inputs.end(), [&](const Declared& d) { return d.tensor.impl() == t.impl(); });
  if (again) t = Tensor(detail::new_view(*value.impl(), value.shape(), 0, value.strides()));
  if (impl_->tape.owns(*t.impl())) fail(fmt::format("input '{}' was computed inside the capture", name), impl_->site);
  const ThreadState& state = thread_state();
  if (state.grad_enabled && state.own->owns(*t.impl()) && state.own->needs_grad(*t.impl()))
    fail(fmt::format("the gradient history of input '{}' {} began before the capture; detach() it or make it inside", name,
                     to_string(t.type())),
         impl_->site);
  impl_->tape.declare(t.impl(), impl_->site);
  impl_->inputs.push_back({name, t});
  return t;
}

void Capture::output(const std::string& name, const Tensor& value) {
  if (!impl_->open) fail("is finished", impl_->site);
  if (!value.defined()) fail(fmt::format("output '{}' is undefined", name), impl_->site);
  for (const Declared& d : impl_->outputs)
    if (d.name == name) fail(fmt::format("output '{}' is declared twice", name), impl_->site);
  impl_->tape.value_of(value.impl(), impl_->site);
  impl_->outputs.push_back({name, value});
}

void Capture::output_gradients() {
  if (!impl_->open) fail("is finished", impl_->site);
  impl_->gradients = true;
}

void Capture::fully_static() { impl_->fully_static = true; }
void Capture::compares_counts() { impl_->compares_counts = true; }
void Capture::live_bytes_are_inputs() { impl_->live_bytes = true; }

namespace {

// Moves the nodes that depend on numbers of selected elements into one unplanned node.
void group_counted(Captured* captured, const std::vector<NodeId>& counted, bool fully_static, bool compares_counts) {
  if (counted.empty()) return;
  const Graph& g = captured->graph;
  const Node& first = g.nodes[counted[0]];
  const std::string place = fmt::format("{} ({})", g.node_text(counted[0]), first.origin.site.view());
  if (fully_static)
    throw CaptureError(error_text(
        first.op->name,
        fmt::format("the size of its result is known only once it has run, and this capture is fully static; give `count`: {}",
                    place),
        {}));
  DynamicGraph grouped = with_dynamic_region(g, counted);
  captured->counts = std::move(grouped.counts);
  captured->count_suspicion = std::move(grouped.suspicion);
  if (captured->count_suspicion.empty() && *std::min_element(captured->counts.begin(), captured->counts.end()) < 2)
    captured->count_suspicion =
        "a mask selected less than two elements, too few to tell what was computed from their number: " + place;
  if (!captured->count_suspicion.empty() && !compares_counts)
    throw CaptureError(
        error_text("capture",
                   fmt::format("sizes depend on `{}`, and {}; capture the step as a callable, which compares calls with "
                               "different counts, or give "
                               "`count`",
                               place, captured->count_suspicion),
                   {}));
  for (std::size_t i = 0; i < counted.size(); ++i) {
    const Node& node = g.nodes[counted[i]];
    captured->report.host_calls.push_back(
        {g.value_name(node.first_output), g.values[node.first_output].type,
         fmt::format("{} counts in every run, at {}; what depends on it runs unplanned, on bytes beside the planned peak",
                     node.op->name, node.origin.site.view())});
  }
  captured->graph = std::move(grouped.graph);
  captured->script = nullptr;
  if (captured->hidden_history.empty()) captured->hidden_history = fmt::format("sizes depend on `{}`", place);
}

}  // namespace

void Capture::continue_draws() {
  if (!impl_->open) fail("is finished", impl_->site);
  impl_->draws_continue = true;
  thread_state().draws = impl_->draws_before;
}

Captured Capture::finish() {
  if (!impl_->open) fail("is finished", impl_->site);
  struct Close {
    Impl& impl;
    ~Close() { impl.close(); }
  } close{*impl_};
  // The tape is set aside first; otherwise the reading of constants would be refused as a host read.
  thread_state().tape = impl_->before;
  std::vector<NodeId> counted;
  const FreezeOptions how{.gradients = impl_->gradients, .live_bytes = impl_->live_bytes};
  Captured captured = freeze(impl_->tape, Name(impl_->name), impl_->inputs, impl_->outputs, how, &counted);
  group_counted(&captured, counted, impl_->fully_static, impl_->compares_counts);
  captured.ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - impl_->opened).count();
  show(captured);
  return captured;
}

}  // namespace tapedeck
