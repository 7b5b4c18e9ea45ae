// while_loop, cond, scan and map. In eager code they run as ordinary loops and branches. If a capture is open or an operand
// is abstract, they trace their functions into regions and make one node:
//
//       scan(body, {c}, {xs})    ->    %c2, %ys = scan(%c, %xs) {...} (%i, %c, %x) { ...  return %c1, %y }
//
// Both ways name the random streams of passes alike, so both draw the same numbers.
#include <tapedeck/engine/control/control.h>
#include <tapedeck/engine/control/dispatch_regions.h>
#include <tapedeck/engine/control/loops.h>
#include <tapedeck/engine/eager/core_calls.h>
#include <tapedeck/engine/eager/host_reads.h>
#include <tapedeck/engine/eager/recorder.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/ir/core_ops.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/kernels/attrs/random.h>
#include <tapedeck/kernels/names.h>

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

namespace tapedeck {
namespace {

using Function = std::function<Tensors(const Tensors&)>;

[[noreturn]] void fail(const char* op, const std::string& message, Site site) {
  throw TypeError(error_text(op, message, site));
}

Tensors joined(const Tensors& a, const Tensors& b, const Tensors& c = {}) {
  Tensors all = a;
  all.insert(all.end(), b.begin(), b.end());
  all.insert(all.end(), c.begin(), c.end());
  return all;
}

void check_defined(const char* op, const Tensors& tensors, const char* what, Site site) {
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (!tensors[i].defined()) fail(op, fmt::format("{} {} is undefined", what, i), site);
}

bool as_nodes(const Tensors& operands) {
  const ThreadState& state = thread_state();
  return (state.tape->capturing && !passes_everything(*state.tape)) || state.abstract ||
         std::any_of(operands.begin(), operands.end(), [](const Tensor& t) { return t.abstract(); });
}

// ---- randomness ----

// The random stream of a loop is named by the place of the loop: "fc.while#0".
DrawPath stream_of(const char* op) {
  ThreadState& state = thread_state();
  Scoped<Name> path(state.path, state.path.empty() ? Name(op) : Name(state.path.str() + "." + op));
  return DrawPath();
}

// Calls `fn` with the random state of pass i. Its draws count from zero. So eager passes and recorded passes draw the same
// numbers.
Tensors in_pass(const Tensor& rng, Name stream, const Tensor& i, Site site, const std::function<Tensors()>& fn) {
  ThreadState& state = thread_state();
  const FoldInAttrs attrs{stream};
  Scoped<Tensor> folded(state.pass_rng, apply(ops::fold_in, {&rng, &i}, &attrs, site));
  Scoped<std::unordered_map<const void*, std::int32_t>> draws(state.draws, {});
  return fn();
}

Tensor index_of(std::int64_t i) { return scalar(static_cast<double>(i), DType::i64); }

// Wraps `fn` so that it takes the number i of the pass as its first argument and draws from the random state of that pass.
Function with_streams(const Function& fn, Name stream, Site site) {
  const Tensor rng = rng_state();
  return [fn, rng, stream, site](const Tensors& all) {
    return in_pass(rng, stream, all[0], site, [&] { return fn(Tensors(all.begin() + 1, all.end())); });
  };
}

// ---- as nodes ----

std::vector<RegionTrace::Input> described(const Tensors& tensors, const char* unnamed) {
  std::vector<RegionTrace::Input> inputs;
  for (std::size_t i = 0; i < tensors.size(); ++i)
    inputs.push_back(
        {tensors[i].name().empty() ? fmt::format("{}{}", unnamed, i) : tensors[i].name().str(), tensors[i].type()});
  return inputs;
}

void add_reads(const RegionTrace& trace, Tensors* all) {
  for (const Tensor& t : trace.reads())
    if (std::none_of(all->begin(), all->end(), [&](const Tensor& known) { return known.impl() == t.impl(); }))
      all->push_back(t);
}

std::vector<RegionTrace::Input> pass_inputs(const Tensors& carried, const Tensors& xs, const Tensors& captured) {
  std::vector<RegionTrace::Input> inputs{{"i", {DType::i64, {}}}};
  for (auto& input : described(carried, "carried")) inputs.push_back(input);
  for (auto input : described(xs, "slice")) inputs.push_back({input.name, slice_type(input.type)});
  for (auto& input : described(captured, "captured")) inputs.push_back(input);
  return inputs;
}

void check_carried(const char* op, const std::vector<Type>& results, const Tensors& carried, Site site) {
  if (results.size() < carried.size())
    fail(op, fmt::format("the body gives {} results, but {} values are carried", results.size(), carried.size()), site);
  for (std::size_t i = 0; i < carried.size(); ++i)
    if (results[i] != carried[i].type())
      fail(op,
           fmt::format("the body makes {} of carried value {}, which is {}", to_string(results[i]), i,
                       to_string(carried[i].type())),
           site);
}

std::vector<Type> types_of(const Tensors& tensors) {
  std::vector<Type> types;
  for (const Tensor& t : tensors) types.push_back(t.type());
  return types;
}

void check_condition(const std::vector<Type>& results, Site site) {
  if (results.size() != 1 || results[0] != Type{DType::boolean, {}})
    fail("while",
         fmt::format("the condition must give one bool[], not {}",
                     results.size() == 1 ? to_string(results[0]) : fmt::format("{} results", results.size())),
         site);
}

LoopResult sorted(Tensors results, std::size_t carried, std::size_t residuals, const Tensor& trips) {
  LoopResult r;
  r.trips = trips;
  r.carried.assign(results.begin(), results.begin() + static_cast<std::ptrdiff_t>(carried));
  r.stacked.assign(results.begin() + static_cast<std::ptrdiff_t>(carried),
                   results.end() - static_cast<std::ptrdiff_t>(residuals));
  return r;
}

LoopResult while_node(const Function& condition, const Function& body, const Tensors& carried, const Tensors& captured,
                      const LoopOptions& options, Name stream, Site site) {
  const auto inputs = pass_inputs(carried, {}, captured);
  const RegionTrace test("while", inputs, with_streams(condition, Name(stream.str() + "?"), site), site);
  check_condition(test.results(), site);
  const RegionTrace pass("while", inputs, with_streams(body, stream, site), site);
  check_carried("while", pass.results(), carried, site);
  Tensors outer;
  add_reads(test, &outer);
  add_reads(pass, &outer);
  LoopAttrs attrs;
  attrs.carried = static_cast<std::int64_t>(carried.size());
  attrs.trips = options.max_trips;
  attrs.checkpoint = options.checkpoint_every;
  const Region regions[2] = {test.region(outer), pass.region(outer)};
  Tensors results = apply_regions(ops::while_loop, regions, joined(carried, captured, outer), &attrs, site);
  const Tensor trips = results[0];
  results.erase(results.begin());
  return sorted(std::move(results), carried.size(), 0, trips);
}

LoopResult scan_node(const Function& body, const Tensors& carried, const Tensors& xs, const Tensors& captured,
                     std::int64_t trips, const LoopOptions& options, Name stream, Site site) {
  const RegionTrace pass("scan", pass_inputs(carried, xs, captured), with_streams(body, stream, site), site);
  check_carried("scan", pass.results(), carried, site);
  Tensors outer;
  add_reads(pass, &outer);
  LoopAttrs attrs;
  attrs.carried = static_cast<std::int64_t>(carried.size());
  attrs.scanned = static_cast<std::int64_t>(xs.size());
  attrs.trips = trips;
  attrs.reverse = options.reverse;
  attrs.checkpoint = options.checkpoint_every;
  const Tensors operands = joined(carried, xs, joined(captured, outer));
  Region region = pass.region(outer);
  const ThreadState& state = thread_state();
  std::vector<bool> needs;
  for (const Tensor& t : operands)
    needs.push_back(state.grad_enabled && is_floating(t.dtype()) && state.tape->needs_grad(*t.impl()));
  if (options.checkpoint_every == 0 && std::count(needs.begin(), needs.end(), true) > 0)
    region = with_residuals(region, layout_of(attrs, types_of(operands), *region), needs, &attrs.residuals);
  Tensors results = apply_regions(ops::scan, {&region, 1}, operands, &attrs, site);
  return sorted(std::move(results), carried.size(), static_cast<std::size_t>(attrs.residuals), index_of(trips));
}

// ---- as ordinary loops ----

bool truth(const Tensor& pred, const char* op, Site site) {
  if (!pred.defined() || pred.type() != Type{DType::boolean, {}})
    fail(op,
         fmt::format("the {} must be bool[], not {}", std::string_view(op) == "cond" ? "predicate" : "condition",
                     pred.defined() ? to_string(pred.type()) : "undefined"),
         site);
  return *static_cast<const bool*>(pred.data());
}

// The loop begins with copies of the carried values, so that a write in place in the body does not reach the tensors outside.
Tensors own(const Tensors& carried) {
  Tensors all;
  for (const Tensor& t : carried) all.push_back(copy(t));
  return all;
}

// The state of an eager loop between its passes.
struct Running {
  const char* op;
  Tensors carried;
  std::vector<Tensors> stacked;  // for each pass, its results to be stacked
  Site site;

  void take(Tensors results) {
    check_defined(op, results, "result", site);
    check_carried(op, types_of(results), carried, site);
    const auto n = static_cast<std::ptrdiff_t>(carried.size());
    if (!stacked.empty() && stacked[0].size() + carried.size() != results.size())
      fail(op,
           fmt::format("the body gives {} results, after {} in the pass before", results.size(),
                       stacked[0].size() + carried.size()),
           site);
    separate(&results);
    carried.assign(results.begin(), results.begin() + n);
    stacked.emplace_back(results.begin() + n, results.end());
  }

 private:
  // A body may return one tensor in several places. The gradient of a loop's node adds the gradients of these places up one by
  // one, each of which is a sum over the passes that follow. An alias does the same for an eager loop, with the same bits.
  void separate(Tensors* results) const {
    for (std::size_t i = results->size(); i-- > 1;) {
      const auto before = results->begin() + static_cast<std::ptrdiff_t>(i);
      const bool again =
          std::any_of(results->begin(), before, [&](const Tensor& t) { return t.impl() == (*results)[i].impl(); });
      if (again) (*results)[i] = alias(Arg((*results)[i], site.file, site.line));
    }
  }
};

// Runs passes in blocks. Each block is a checkpoint region: backward computes its values again. A block has `every` passes.
// With `every` = 0 all passes are one block, and this block is no region. With kCheckpointSqrt each block has one pass more
// than the block before it, so that both the number of blocks and their lengths are about sqrt(trips). kCheckpointLog makes the
// same blocks here, because a region inside a region becomes a part of the outer region. Only captured loops follow the
// logarithmic schedule.
void run_in_blocks(std::int64_t every, const std::function<bool()>& next_pass) {
  bool more = true;
  for (std::int64_t length = every > 0 ? every : 1; more; length += every < 0 ? 1 : 0) {
    const auto block = [&] {
      for (std::int64_t k = 0; (every == 0 || k < length) && more; ++k) more = next_pass();
      return Tensor();
    };
    if (every == 0)
      block();
    else
      checkpoint(block);
  }
}

// Stacks the results of all passes: one tensor for each position in the results. Slices of passes that were not made are
// zeros.
Tensors stack_all(const std::vector<Tensors>& passes, const std::vector<Type>& types, std::int64_t trips, Site site) {
  Tensors all;
  for (std::size_t k = 0; k < types.size(); ++k) {
    std::vector<Tensor> slices;
    for (const Tensors& pass : passes) {
      if (pass[k].type() != types[k])
        fail("stack",
             fmt::format("stacked result {} is {} in one pass and {} in another", k, to_string(types[k]),
                         to_string(pass[k].type())),
             site);
      slices.push_back(pass[k]);
    }
    while (static_cast<std::int64_t>(slices.size()) < trips) slices.push_back(full(types[k].shape, 0, types[k].dtype, site));
    all.push_back(slices.empty() ? full(stack_type(0, types[k]).shape, 0, types[k].dtype, site) : stack(slices, 0, site));
  }
  return all;
}

// The types of the stacked results. If the loop made no pass, the body is traced to find them.
std::vector<Type> stacked_types(const Running& run, const Function& body, const Tensors& xs, const Tensors& captured,
                                Name stream) {
  if (!run.stacked.empty()) return types_of(run.stacked[0]);
  const RegionTrace trace(run.op, pass_inputs(run.carried, xs, captured), with_streams(body, stream, run.site), run.site);
  check_carried(run.op, trace.results(), run.carried, run.site);
  return {trace.results().begin() + static_cast<std::ptrdiff_t>(run.carried.size()), trace.results().end()};
}

LoopResult while_eagerly(const Function& condition, const Function& body, const Tensors& carried, const Tensors& captured,
                         const LoopOptions& options, Name stream, Site site) {
  Running run{"while", own(carried), {}, site};
  const std::string asked = stream.str() + "?";
  const Function test = with_streams(condition, borrowed_name(asked), site), pass = with_streams(body, stream, site);
  std::int64_t i = 0;
  run_in_blocks(options.checkpoint_every, [&] {
    if (options.max_trips >= 0 && i >= options.max_trips) return false;
    const Tensors arguments = joined({index_of(i)}, run.carried, captured);
    if (!truth(test(arguments)[0], "while", site)) return false;
    run.take(pass(arguments));
    ++i;
    return true;
  });
  const std::vector<Type> types = stacked_types(run, body, {}, captured, stream);
  if (!types.empty() && options.max_trips < 0) fail("while", "results are stacked, but max_trips is not given", site);
  return {run.carried, stack_all(run.stacked, types, options.max_trips, site), index_of(i)};
}

LoopResult scan_eagerly(const Function& body, const Tensors& carried, const Tensors& xs, const Tensors& captured,
                        std::int64_t trips, const LoopOptions& options, Name stream, Site site) {
  Running run{"scan", own(carried), {}, site};
  const Function pass = with_streams(body, stream, site);
  std::vector<Tensors> slices;  // for each scanned operand, its slices
  for (const Tensor& x : xs) slices.push_back(trips > 0 ? unbind(x, 0) : Tensors{});
  std::int64_t k = 0;
  run_in_blocks(options.checkpoint_every, [&] {
    if (k == trips) return false;
    const std::int64_t i = options.reverse ? trips - 1 - k : k;
    ++k;
    Tensors arguments = joined({index_of(i)}, run.carried);
    for (const Tensors& x : slices) arguments.push_back(x[i]);
    run.take(pass(joined(arguments, captured)));
    return true;
  });
  const std::vector<Type> types = stacked_types(run, body, xs, captured, stream);
  if (options.reverse) std::reverse(run.stacked.begin(), run.stacked.end());
  return {run.carried, stack_all(run.stacked, types, trips, site), index_of(trips)};
}

std::int64_t trips_of(const Tensors& xs, const LoopOptions& options, Site site) {
  std::int64_t trips = options.max_trips;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    const int rank = xs[i].rank();
    if (options.axis < -rank || options.axis >= rank)
      fail("scan", fmt::format("{} has no axis {} to be sliced along", to_string(xs[i].type()), options.axis), site);
    const std::int64_t n = xs[i].size(static_cast<int>(options.axis));
    if (trips >= 0 && n != trips) fail("scan", fmt::format("operand {} has {} slices, not {}", i, n, trips), site);
    trips = n;
  }
  if (trips < 0) fail("scan", "nothing is scanned, and max_trips does not say how many passes there are", site);
  return trips;
}

void check_options(const char* op, const LoopOptions& options, Site site) {
  if (options.checkpoint_every < kCheckpointLog)
    fail(op, fmt::format("checkpoint_every = {} makes no sense", options.checkpoint_every), site);
  if (options.max_trips < -1) fail(op, fmt::format("max_trips = {} makes no sense", options.max_trips), site);
}

}  // namespace

LoopResult while_loop(const std::function<Tensor(const Tensors&)>& condition, const Function& body, const Tensors& carried,
                      const Tensors& captured, const LoopOptions& options, Site site) {
  check_options("while", options, site);
  check_defined("while", carried, "carried value", site);
  check_defined("while", captured, "captured value", site);
  const Function test = [&](const Tensors& all) { return Tensors{condition(all)}; };
  const DrawPath draw = stream_of("while");
  const Name stream = draw.name();
  if (as_nodes(joined(carried, captured))) return while_node(test, body, carried, captured, options, stream, site);
  return while_eagerly(test, body, carried, captured, options, stream, site);
}

LoopResult scan(const Function& body, const Tensors& carried, const Tensors& xs, const Tensors& captured,
                const LoopOptions& options, Site site) {
  check_options("scan", options, site);
  check_defined("scan", carried, "carried value", site);
  check_defined("scan", xs, "scanned operand", site);
  check_defined("scan", captured, "captured value", site);
  const std::int64_t trips = trips_of(xs, options, site);
  Tensors first;  // the scanned operands, with the sliced axis moved to the front
  for (const Tensor& x : xs) first.push_back(options.axis == 0 || options.axis == -x.rank() ? x : movedim(x, options.axis, 0));
  const DrawPath draw = stream_of("scan");
  const Name stream = draw.name();
  LoopResult r = as_nodes(joined(carried, xs, captured))
                     ? scan_node(body, carried, first, captured, trips, options, stream, site)
                     : scan_eagerly(body, carried, first, captured, trips, options, stream, site);
  if (options.axis != 0)
    for (Tensor& y : r.stacked) y = movedim(y, 0, options.axis);
  return r;
}

Tensors map(const Function& fn, const Tensors& xs, const LoopOptions& options, Site site) {
  if (xs.empty()) fail("map", "there is nothing to map over", site);
  return scan(fn, {}, xs, {}, options, site).stacked;
}

Tensors cond(const Tensor& pred, const Function& then_branch, const Function& else_branch, const Tensors& operands, Site site) {
  if (!pred.defined() || pred.type() != Type{DType::boolean, {}})
    fail("cond", fmt::format("the predicate must be bool[], not {}", pred.defined() ? to_string(pred.type()) : "undefined"),
         site);
  check_defined("cond", operands, "operand", site);
  const DrawPath draw = stream_of("cond");
  const Name stream = draw.name();
  const Tensor rng = rng_state(), zero = index_of(0);
  auto branch = [&](const Function& fn) {
    return [&](const Tensors& all) { return in_pass(rng, stream, zero, site, [&] { return fn(all); }); };
  };
  if (!as_nodes(joined(operands, {pred}))) {
    Tensors results = branch(truth(pred, "cond", site) ? then_branch : else_branch)(operands);
    check_defined("cond", results, "result", site);
    return results;
  }
  const RegionTrace a("cond", described(operands, "operand"), branch(then_branch), site),
      b("cond", described(operands, "operand"), branch(else_branch), site);
  Tensors outer;
  add_reads(a, &outer);
  add_reads(b, &outer);
  const Region regions[2] = {a.region(outer), b.region(outer)};
  return apply_regions(ops::cond, regions, joined({pred}, operands, outer), nullptr, site);
}

}  // namespace tapedeck
