// Host calls: a table of functions by number, the kernel that calls them in a replay, and the functions that record them.
//
//       capture    on_host(x, fn)    ->    fn(copy of x) now;   node on_host(%x, %token) {function=7}
//       replay     the node          ->    function number 7, with tensors made of the node's operands
//
// A graph holds only the number. The capture keeps the function itself alive.
#include <tapedeck/engine/eager/host_reads.h>
#include <tapedeck/engine/eager/recorder.h>
#include <tapedeck/engine/gradient/gradients.h>
#include <tapedeck/engine/ir/infer.h>
#include <tapedeck/engine/ops/host.h>
#include <tapedeck/engine/ops/ops.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <unordered_map>

namespace tapedeck {

using detail::TensorImpl;

namespace {

const Type kToken{DType::u8, {0}};

// The functions that recorded nodes call, by number. The table does not keep a function alive; the captures do.
class HostFunctions {
 public:
  std::int64_t add(const std::shared_ptr<HostStretch>& fn) {
    const std::lock_guard lock(mutex_);
    if (functions_.size() > 2 * live_ + 64) sweep();
    functions_[next_] = fn;
    return next_++;
  }
  std::shared_ptr<HostStretch> find(std::int64_t number) {
    const std::lock_guard lock(mutex_);
    const auto it = functions_.find(number);
    return it == functions_.end() ? nullptr : it->second.lock();
  }

 private:
  void sweep() {
    std::erase_if(functions_, [](const auto& entry) { return entry.second.expired(); });
    live_ = functions_.size();
  }
  std::mutex mutex_;
  std::unordered_map<std::int64_t, std::weak_ptr<HostStretch>> functions_;
  std::int64_t next_ = 0;
  std::size_t live_ = 0;
};

HostFunctions& host_functions() {
  static auto* functions = new HostFunctions;  // never destroyed: replays may outlive static objects
  return *functions;
}

// Runs f as ordinary code: on the thread's own tape, outside of any open capture, checkpoint region or vjp.
template <class F>
auto as_ordinary_code(F&& f) {
  ThreadState& state = thread_state();
  const Scoped<Recorder*> tape(state.tape, state.own.get());
  const Scoped<std::int32_t> region(state.region, kNone);
  const Scoped<NodeId> twin(state.twin, kNone);
  const Scoped<Phase> phase(state.phase, Phase::forward);
  const Scoped<VjpCalls*> calls(state.calls, nullptr);
  const Scoped<bool> abstract(state.abstract, false);
  return f();
}

// A copy that belongs to the author's function, which may write or keep it.
Tensor own_copy(const Tensor& t) {
  const NoGrad no_grad;
  return copy(t);
}

Type type_of(const View& view) {
  Type type{view.dtype, {}};
  type.shape.rank = view.rank;
  std::copy_n(view.sizes, view.rank, type.shape.sizes);
  return type;
}

std::string misfit(const std::vector<Tensor>& results, const View* wanted, std::size_t n) {
  if (results.size() != n) return fmt::format("the function returned {} results, {} when it was recorded", results.size(), n);
  for (std::size_t i = 0; i < n; ++i) {
    const Type type = type_of(wanted[i]);
    const std::string got = results[i].defined() ? to_string(results[i].type()) : "an undefined tensor";
    if (!results[i].defined() || results[i].type() != type)
      return fmt::format("the function returned {} as result {}, {} when it was recorded", got, i, to_string(type));
  }
  return "";
}

void call_function(const KernelCall& call) {
  const auto& attrs = call.attributes<HostAttrs>();
  const std::shared_ptr<HostStretch> fn = host_functions().find(attrs.function);
  if (!fn) throw ExecutionError("its function is not there: the graph was read from text, or the capture that held it is gone");
  std::vector<Tensor> xs;  // the operands are dense, because the op takes no other strides
  for (int i = 0; i < call.n_inputs - (attrs.chained ? 1 : 0); ++i)
    xs.push_back(from_bytes(type_of(call.inputs[i]), call.inputs[i].data));
  const std::vector<Tensor> results = (*fn)(xs);
  const auto n = static_cast<std::size_t>(call.n_outputs - 1);
  const std::string wrong = misfit(results, call.outputs + 1, n);
  if (!wrong.empty()) throw ExecutionError(wrong);
  const NoGrad no_grad;
  for (std::size_t i = 0; i < n; ++i)
    results[i].copy_to(call.outputs[i + 1].data, static_cast<std::size_t>(results[i].bytes()), dtype_size(results[i].dtype()));
}

// The kernel of on_host. Unlike other kernels it allocates, and it throws the exceptions of the author's function; the replay
// catches them.
void run_on_host(const KernelCall& call) {
  as_ordinary_code([&] { call_function(call); });
}

void infer_on_host(Infer& f) {
  if (f.outputs.empty() || f.outputs[0] != kToken) f.fail(fmt::format("its first result is a token {}", to_string(kToken)));
  const bool chained = f.attributes<HostAttrs>().chained;
  if (chained && (f.inputs.empty() || f.inputs.back() != kToken))
    f.fail(fmt::format("its last operand must be a token {}", to_string(kToken)));
}

Tensor last_token(Recorder& tape) {
  Tensor token(detail::new_impl(kToken, nullptr));
  tape.bind(token.impl(), tape.last_effect);
  return token;
}

// Calls fn now, and records a node that calls fn again in every replay.
std::vector<Tensor> call_and_record(const std::vector<Tensor>& xs, HostStretch fn, const char* name, Site site) {
  ThreadState& state = thread_state();
  Recorder& tape = *state.tape;
  const std::vector<Tensor> results = as_ordinary_code([&] {
    std::vector<Tensor> own;
    for (const Tensor& x : xs) own.push_back(own_copy(x));
    std::vector<Tensor> ys;
    for (const Tensor& y : fn(own)) {
      if (!y.defined())
        throw CaptureError(error_text("exclude_from_capture", "the function returned an undefined tensor", site));
      ys.push_back(own_copy(y));
    }
    return ys;
  });
  HostAttrs attrs;
  attrs.name = Name(name);
  attrs.chained = tape.last_effect != kNone;
  auto held = std::make_shared<HostStretch>(std::move(fn));
  attrs.function = host_functions().add(held);
  tape.held.push_back(held);
  std::vector<Tensor> handles = xs, made{empty(kToken)};
  if (attrs.chained) handles.push_back(last_token(tape));
  made.insert(made.end(), results.begin(), results.end());
  std::vector<TensorImpl*> in, out;
  for (const Tensor& t : handles) in.push_back(t.impl());
  for (const Tensor& t : made) out.push_back(t.impl());
  const NodeId n = tape.record(ops::on_host, in, &attrs, out, false, nullptr, site);
  tape.last_effect = tape.graph.nodes[n].first_output;
  return results;
}

void require_defined(const Tensor& x, const char* what, Site site) {
  if (!x.defined()) throw TypeError(error_text(what, "an operand is undefined", site));
}

// d sum(fn(xs) * dys) / d xs for each floating x. It is zeros if no result depends on that x. `dys` has a gradient for each
// floating result.
std::vector<Tensor> gradients_of(const HostStretch& fn, const std::vector<Tensor>& xs, const std::vector<Tensor>& dys,
                                 Site site) {
  std::vector<Tensor> leaves, wrt, targets, heads;
  for (const Tensor& x : xs) {
    leaves.push_back(x);
    if (is_floating(x.dtype())) wrt.push_back(leaves.back().requires_grad(true));
  }
  Scoped<bool> enabled(thread_state().grad_enabled, true);
  std::vector<Tensor> ys;
  for (const Tensor& y : fn(leaves))
    if (y.defined() && is_floating(y.dtype())) ys.push_back(y);
  if (ys.size() != dys.size())
    throw CaptureError(error_text(
        "exclude_from_capture",
        fmt::format("the function returned {} floating results in backward, {} in forward", ys.size(), dys.size()), site));
  for (std::size_t i = 0; i < ys.size(); ++i)
    if (ys[i].requires_grad()) {
      targets.push_back(ys[i]);
      heads.push_back(dys[i]);
    }
  std::vector<Tensor> dxs(wrt.size());
  if (!targets.empty()) {
    GradientOptions options;
    options.heads = heads;
    dxs = gradients(targets, wrt, options, site);
  }
  for (std::size_t i = 0; i < dxs.size(); ++i)
    if (!dxs[i].defined()) dxs[i] = zeros(wrt[i].shape(), wrt[i].dtype(), site);
  return dxs;
}

}  // namespace

const Tensor& on_host(const Tensor& x, HostFunction fn, const char* name, Site site) {
  require_defined(x, "on_host", site);
  const ThreadState& state = thread_state();
  if (!state.tape->capturing || passes_everything(*state.tape)) {
    if (!state.abstract && !x.abstract()) as_ordinary_code([&] { fn(own_copy(x)); });
    return x;
  }
  if (state.abstract || x.abstract()) throw CaptureError(error_text("on_host", "cannot be recorded without data", site));
  call_and_record(
      {x}, [fn = std::move(fn)](const std::vector<Tensor>& xs) { return fn(xs[0]), std::vector<Tensor>(); }, name, site);
  return x;
}

std::vector<Tensor> exclude_from_capture(const std::vector<Tensor>& xs, HostStretch fn, const char* name, Site site) {
  for (const Tensor& x : xs) require_defined(x, "exclude_from_capture", site);
  const ThreadState& state = thread_state();
  if (!state.tape->capturing || passes_everything(*state.tape)) return fn(xs);
  if (state.region != kNone)
    throw CaptureError(error_text("exclude_from_capture",
                                  "cannot stand inside a checkpoint region: backward would have to run it a third time", site));
  const bool abstract = state.abstract || std::any_of(xs.begin(), xs.end(), [](const Tensor& x) { return x.abstract(); });
  if (abstract) throw CaptureError(error_text("exclude_from_capture", "cannot be recorded without data", site));
  const bool wants_gradients = state.grad_enabled;
  const HostStretch forward = [fn, wants_gradients, site](const std::vector<Tensor>& own) {
    Scoped<bool> enabled(thread_state().grad_enabled, wants_gradients);
    const std::vector<Tensor> ys = fn(own);
    for (const Tensor& y : ys)
      if (y.defined() && y.requires_grad())
        throw CaptureError(
            error_text("exclude_from_capture",
                       fmt::format("its result {} depends on a tensor that needs a gradient and is no operand; pass it too",
                                   to_string(y.type())),
                       site));
    return ys;
  };
  const std::string backward_name = std::string("grad.") + name;
  return custom_gradient(
      xs, [&](const std::vector<Tensor>& operands) { return call_and_record(operands, forward, name, site); },
      [fn, backward_name, site](const std::vector<Tensor>& operands, const std::vector<Tensor>&,
                                const std::vector<Tensor>& dys) {
        std::vector<Tensor> all = operands;
        for (const Tensor& dy : dys)
          if (is_floating(dy.dtype())) all.push_back(dy);
        const std::size_t n = operands.size();
        const std::vector<Tensor> made = call_and_record(
            all,
            [fn, n, site](const std::vector<Tensor>& own) {
              const auto middle = own.begin() + static_cast<std::ptrdiff_t>(n);
              return gradients_of(fn, {own.begin(), middle}, {middle, own.end()}, site);
            },
            backward_name.c_str(), site);
        std::vector<Tensor> dxs;
        std::size_t k = 0;
        for (const Tensor& x : operands) dxs.push_back(is_floating(x.dtype()) ? made[k++] : Tensor());
        return dxs;
      },
      site);
}

}  // namespace tapedeck

#define TAPEDECK_DEFINE_OPS
#include <tapedeck/engine/ops/host.h>
