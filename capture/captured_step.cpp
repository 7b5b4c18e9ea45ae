// The callable: records its first two calls, compares them, replays after.
#include <tapedeck/capture/capture.h>
#include <tapedeck/engine/text.h>
#include <tapedeck/engine/thread_state.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

namespace tapedeck {

namespace {

// What was recorded for one list of input types.
struct Recording {
  std::vector<Type> types;
  std::optional<Captured> first;
  std::optional<Captured> captured;
  std::unique_ptr<Executor> executor;
  std::string reason;       // why it was recorded
};

std::string types_text(const std::vector<Type>& types) {
  std::string text;
  for (const Type& t : types) text += (text.empty() ? "" : ", ") + to_string(t);
  return text;
}

bool same_literal(const Literal& a, const Literal& b) {
  if (a.type != b.type || !a.data != !b.data) return false;
  return !a.data || std::memcmp(a.data.get(), b.data.get(), static_cast<std::size_t>(a.type.bytes())) == 0;
}

// Two recordings must be the same program with the same constants; the first difference is an error that says what to do.
void compare(const Graph& a, const Graph& b) {
  const NodeId n = std::min(a.node_count(), b.node_count());
  for (NodeId i = 0; i < n; ++i) {
    const Node &x = a.nodes[static_cast<std::size_t>(i)], &y = b.nodes[static_cast<std::size_t>(i)];
    const Literal *p = a.literal(x), *q = b.literal(y);
    if (p && q && p->type == q->type && !same_literal(*p, *q))
      throw CaptureError(fmt::format("[capture] a constant {} differs between the first two calls of the step (first read at {}); pass it as an input",
                                     to_string(p->type), x.origin.site.view()));
    const bool same_inputs = std::equal(a.inputs(x).begin(), a.inputs(x).end(), b.inputs(y).begin(), b.inputs(y).end());
    if (x.op != y.op || !same_inputs || a.output_types(x) != b.output_types(y) || (!p && !same_attributes(a, x, b, y)))
      throw CaptureError(fmt::format("[capture] the step did something else on its second call: node {} was `{}` ({}), then `{}` ({})", i,
                                     a.node_text(i), x.origin.site.view(), b.node_text(i), y.origin.site.view()));
  }
  if (a.node_count() != b.node_count())
    throw CaptureError(fmt::format("[capture] the step recorded {} nodes on its first call and {} on its second", a.node_count(), b.node_count()));
  if (a.outputs != b.outputs) throw CaptureError("[capture] the step returned other results on its second call");
}

// A tensor made anew in every call cannot be what a replay reads and writes.
void compare_tensors(const std::vector<Tensor>& a, const std::vector<Tensor>& b, std::size_t from, const char* what) {
  if (a.size() != b.size()) throw CaptureError(fmt::format("[capture] the step used {} {} tensors on its first call and {} on its second", a.size(), what, b.size()));
  for (std::size_t i = from; i < a.size(); ++i)
    if (a[i].impl() != b[i].impl())
      throw CaptureError(fmt::format("[capture] the {} '{}' is another tensor on the second call of the step; make it once, outside", what, b[i].name().view()));
}

bool draws(const Graph& g) {
  return std::any_of(g.updates.begin(), g.updates.end(), [&](const Update& u) { return g.values[static_cast<std::size_t>(u.state)].role == Role::rng; });
}

}  // namespace

struct CapturedStep::Impl {
  StepFunction fn;
  CapturedStepOptions options;
  std::vector<std::unique_ptr<Recording>> cache;
  int recordings = 0, replays = 0;

  Recording& find(const std::vector<Type>& types) {
    for (auto& r : cache)
      if (r->types == types) return *r;
    auto r = std::make_unique<Recording>();
    r->types = types;
    r->reason = cache.empty() ? "first call" : fmt::format("input types changed to ({}) from ({})", types_text(types), types_text(cache.back()->types));
    cache.push_back(std::move(r));
    return *cache.back();
  }

  std::vector<Tensor> record(Recording& r, const std::vector<Tensor>& inputs) {
    Capture capture("step");
    std::vector<Tensor> inside;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      inside.push_back(capture.input(i < options.input_names.size() ? options.input_names[i] : fmt::format("in{}", i), inputs[i]));
    std::vector<Tensor> outputs = fn(inside);
    for (std::size_t i = 0; i < outputs.size(); ++i) capture.output(fmt::format("out{}", i), outputs[i]);
    Captured captured = capture.finish();
    ++recordings;
    if (!r.first) {
      r.first = std::move(captured);
      return outputs;
    }
    compare_tensors(r.first->inputs, captured.inputs, inputs.size(), "input");
    compare_tensors(r.first->state, captured.state, 0, "state");
    compare(r.first->graph, captured.graph);
    r.captured = std::move(captured);
    Plan plan = make_plan(r.captured->graph, options.plan);
    if (!plan.feasible) throw CaptureError("[capture] " + plan.infeasible_reason);
    r.executor = std::make_unique<Executor>(std::move(plan), options.executor);
    for (std::size_t i = 0; i < r.captured->state.size(); ++i) {
      const Graph& g = r.captured->graph;
      r.executor->bind_state(g.values[static_cast<std::size_t>(g.n_inputs) + i].name.str(), r.captured->state[i]);
    }
    return outputs;
  }

  std::vector<Tensor> replay(Recording& r, const std::vector<Tensor>& inputs) {
    // Declared inputs come first; the others (learning rates) are read from their tensors, which their owners may have set since.
    for (std::size_t i = 0; i < r.captured->inputs.size(); ++i)
      r.executor->set_input(static_cast<int>(i), i < inputs.size() ? inputs[i] : r.captured->inputs[i]);
    r.executor->run();
    if (draws(r.captured->graph)) thread_state().draws.clear();  // a new random step has begun, as after an eager one
    ++replays;
    return r.executor->outputs();
  }
};

CapturedStep::CapturedStep(StepFunction fn, CapturedStepOptions options) : impl_(std::make_unique<Impl>()) {
  impl_->fn = std::move(fn);
  impl_->options = std::move(options);
}
CapturedStep::~CapturedStep() = default;
CapturedStep::CapturedStep(CapturedStep&&) noexcept = default;

std::vector<Tensor> CapturedStep::operator()(const std::vector<Tensor>& inputs) {
  std::vector<Type> types;
  for (const Tensor& t : inputs) types.push_back(t.type());
  Recording& r = impl_->find(types);
  return r.executor ? impl_->replay(r, inputs) : impl_->record(r, inputs);
}

int CapturedStep::recordings() const { return impl_->recordings; }
int CapturedStep::replays() const { return impl_->replays; }

std::string CapturedStep::explain() const {
  std::string text = fmt::format("recorded {} times, replayed {} times\n", impl_->recordings, impl_->replays);
  for (const auto& r : impl_->cache) {
    text += fmt::format("for ({}): {}\n", types_text(r->types), r->reason);
    const auto& captured = r->captured ? r->captured : r->first;
    if (captured) text += captured->report.to_string();
    if (r->executor) text += fmt::format("planned peak {} bytes in {} segments\n", r->executor->plan().peak_bytes, r->executor->plan().segments.size());
  }
  return text;
}

}  // namespace tapedeck
