// Inference of loops and branches: checks that the regions take exactly the values that the node gives them, and finds the
// types of the results.
//
//       scan(%c, %xs, %w), body (i, c, slice of xs, w) -> (c, y)    results: c as carried, and y stacked once per pass
#include <tapedeck/engine/ops/control.h>

#include <tapedeck/engine/control/control.h>
#include <tapedeck/engine/control/control_gradient.h>
#include <tapedeck/engine/control/control_run.h>
#include <tapedeck/engine/eager/vjp.h>
#include <tapedeck/engine/ir/infer.h>

#include <fmt/format.h>

#include <algorithm>

namespace tapedeck {

Type slice_type(const Type& stack) {
  Type t{stack.dtype, {}};
  for (int i = 1; i < stack.shape.rank; ++i) t.shape.sizes[t.shape.rank++] = stack.shape[i];
  return t;
}

Type stack_type(std::int64_t trips, const Type& slice) {
  Type t{slice.dtype, {}};
  t.shape.sizes[t.shape.rank++] = trips;
  for (std::int64_t size : slice.shape) t.shape.sizes[t.shape.rank++] = size;
  return t;
}

LoopLayout layout_of(const LoopAttrs& attrs, std::span<const Type> operands, const Graph& body) {
  LoopLayout l;
  l.carried = static_cast<std::size_t>(attrs.carried);
  l.scanned = static_cast<std::size_t>(attrs.scanned);
  l.captured = operands.size() - l.carried - l.scanned;
  l.stacked = body.outputs.size() - l.carried;
  l.trips = l.scanned > 0 ? operands[l.carried].shape[0] : attrs.trips;
  return l;
}

std::int64_t most_passes(const LoopGradAttrs& attrs, std::span<const Type> operands) {
  return attrs.scanned > 0 ? operands[static_cast<std::size_t>(attrs.carried) + 1].shape[0] : attrs.trips;
}

namespace {

const Type kIndex{DType::i64, {}};
const Type kBool{DType::boolean, {}};

// Checks that a region takes inputs of exactly the types `wanted`.
void require_inputs(const Infer& f, const char* which, const Graph& region, const std::vector<Type>& wanted) {
  if (region.n_inputs != static_cast<std::int32_t>(wanted.size()))
    f.fail(fmt::format("{} takes {} values, the node gives it {}", which, region.n_inputs, wanted.size()));
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (region.values[i].type != wanted[i])
      f.fail(fmt::format("{} takes {} as value {} (%{}), the node gives it {}", which, to_string(region.values[i].type), i,
                         region.value_name(static_cast<ValueId>(i)), to_string(wanted[i])));
}

Type result_type(const Graph& region, std::size_t i) { return region.values[region.outputs[i]].type; }

void check_counts(const Infer& f, const LoopAttrs& a) {
  const auto n = static_cast<std::int64_t>(f.inputs.size());
  if (a.carried < 0 || a.scanned < 0 || a.carried > n || a.scanned > n - a.carried)
    f.fail(fmt::format("{} carried and {} scanned operands, but {} in all", a.carried, a.scanned, n));
  if (a.trips < -1) f.fail(fmt::format("{} passes make no sense", a.trips));
  if (a.checkpoint < kCheckpointLog) f.fail(fmt::format("checkpoint={} makes no sense", a.checkpoint));
  if (a.residuals < 0) f.fail("residuals cannot be negative");
}

// Checks that operand i, which is scanned, has one slice for each pass. Sets *trips if the number of passes was not known.
void require_slices(const Infer& f, std::size_t i, const Type& stack, std::int64_t* trips) {
  if (stack.shape.rank == 0) f.fail(fmt::format("operand {} is scanned, but has no axis", i));
  const std::int64_t slices = stack.shape[0];
  if (*trips >= 0 && *trips != slices) f.fail(fmt::format("operand {} has {} slices, not {}", i, slices, *trips));
  *trips = slices;
}

Type checked_stack_type(const Infer& f, std::int64_t trips, const Type& slice) {
  if (trips < 0) f.fail("results are stacked, but the number of passes has no bound (trips)");
  if (slice.shape.rank == kMaxRank)
    f.fail(fmt::format("cannot stack {}: it would have more than {} dimensions", to_string(slice), kMaxRank));
  return stack_type(trips, slice);
}

// The types of the inputs of a loop body: the number of the pass, carried values, slices, captured values.
std::vector<Type> pass_types(const Infer& f, const LoopAttrs& a, std::int64_t* trips) {
  std::vector<Type> types{kIndex};
  *trips = a.trips;
  for (std::size_t i = 0; i < f.inputs.size(); ++i) {
    const auto k = static_cast<std::int64_t>(i);
    if (k < a.carried || k >= a.carried + a.scanned) {
      types.push_back(f.inputs[i]);
      continue;
    }
    require_slices(f, i, f.inputs[i], trips);
    types.push_back(slice_type(f.inputs[i]));
  }
  return types;
}

void infer_body(Infer& f, const Graph& body, const std::vector<Type>& pass, const LoopAttrs& a, std::int64_t trips) {
  require_inputs(f, "the body", body, pass);
  const auto carried = static_cast<std::size_t>(a.carried);
  if (body.outputs.size() < carried)
    f.fail(fmt::format("the body gives {} results, but {} values are carried", body.outputs.size(), carried));
  if (static_cast<std::size_t>(a.residuals) > body.outputs.size() - carried)
    f.fail("there are more residuals than stacked results");
  for (std::size_t i = 0; i < body.outputs.size(); ++i) {
    const Type t = result_type(body, i);
    if (i < carried && t != pass[i + 1])
      f.fail(fmt::format("the body makes {} of carried value {}, which is {}", to_string(t), i, to_string(pass[i + 1])));
    if (i < carried) {
      f.outputs.push_back(t);
      continue;
    }
    f.outputs.push_back(checked_stack_type(f, trips, t));
  }
}

void infer_while(Infer& f) {
  const auto& a = f.attributes<LoopAttrs>();
  check_counts(f, a);
  if (a.scanned > 0 || a.reverse) f.fail("a while loop scans nothing");
  std::int64_t trips = -1;
  const std::vector<Type> pass = pass_types(f, a, &trips);
  const Graph& condition = *f.regions[0];
  require_inputs(f, "the condition", condition, pass);
  if (condition.outputs.size() != 1 || result_type(condition, 0) != kBool)
    f.fail(fmt::format("the condition must give one bool[], not {}",
                       condition.outputs.size() == 1 ? to_string(result_type(condition, 0))
                                                     : fmt::format("{} results", condition.outputs.size())));
  f.outputs.assign(1, kIndex);
  infer_body(f, *f.regions[1], pass, a, trips);
}

void infer_scan(Infer& f) {
  const auto& a = f.attributes<LoopAttrs>();
  check_counts(f, a);
  std::int64_t trips = -1;
  const std::vector<Type> pass = pass_types(f, a, &trips);
  if (trips < 0) f.fail("nothing is scanned, and `trips` does not say how many passes there are");
  f.outputs.clear();
  infer_body(f, *f.regions[0], pass, a, trips);
}

void infer_cond(Infer& f) {
  if (f.inputs[0] != kBool) f.fail(fmt::format("the predicate must be bool[], not {}", to_string(f.inputs[0])));
  const std::vector<Type> operands(f.inputs.begin() + 1, f.inputs.end());
  require_inputs(f, "the first branch", *f.regions[0], operands);
  require_inputs(f, "the second branch", *f.regions[1], operands);
  const std::size_t n = f.regions[0]->outputs.size(), m = f.regions[1]->outputs.size();
  if (n != m) f.fail(fmt::format("one branch gives {} results, the other {}", n, m));
  f.outputs.clear();
  for (std::size_t i = 0; i < n; ++i) {
    const Type a = result_type(*f.regions[0], i), b = result_type(*f.regions[1], i);
    if (a != b) f.fail(fmt::format("result {} is {} in one branch and {} in the other", i, to_string(a), to_string(b)));
    f.outputs.push_back(a);
  }
}

// What a loop_grad hands around, by kind. ("d x" is the gradient of x.)
struct LoopGradTypes {
  std::vector<Type> pass{kIndex};  // the inputs of a pass: i, carried, slices, captured
  std::vector<Type> d_carried, d_captured, d_stacked, d_scanned;
  std::vector<Type> d_passes;  // the slices of d_stacked that one pass reads
  std::int64_t trips = -1;     // the largest number of passes; -1 = no bound
};

void check_loop_grad_counts(const Infer& f, const LoopGradAttrs& a) {
  const std::size_t n = a.needs.view().size();
  const auto most = static_cast<std::int64_t>(n);
  if (a.carried < 0 || a.scanned < 0 || a.carried > most || a.scanned > most - a.carried)
    f.fail(fmt::format("{} carried and {} scanned operands, but the loop has {} operands", a.carried, a.scanned, n));
  if (f.inputs.size() < n + 1)
    f.fail(fmt::format("{} operands cannot hold a number of passes and the {} operands of the loop", f.inputs.size(), n));
  if (f.inputs[0] != kIndex) f.fail(fmt::format("the number of passes must be i64[], not {}", to_string(f.inputs[0])));
  if (a.needs.view().find_first_not_of("012") != std::string_view::npos)
    f.fail(fmt::format("needs=\"{}\" has a character other than 0, 1 and 2", a.needs.view()));
  if (a.trips < -1) f.fail(fmt::format("{} passes make no sense", a.trips));
  if (a.checkpoint < kCheckpointLog) f.fail(fmt::format("checkpoint={} makes no sense", a.checkpoint));
}

LoopGradTypes loop_grad_operands(const Infer& f, const LoopGradAttrs& a) {
  LoopGradTypes types;
  types.trips = a.trips;
  const std::string_view needs = a.needs.view();
  const auto carried = static_cast<std::size_t>(a.carried), scanned = static_cast<std::size_t>(a.scanned);
  for (std::size_t i = 0; i < needs.size(); ++i) {
    const Type t = f.inputs[i + 1];
    const bool is_scanned = i >= carried && i < carried + scanned;
    if (is_scanned) require_slices(f, i + 1, t, &types.trips);
    types.pass.push_back(is_scanned ? slice_type(t) : t);
    if (!is_floating(t.dtype)) continue;
    if (i < carried)
      types.d_carried.push_back(t);
    else if (needs[i] != '0')
      (is_scanned ? types.d_scanned : types.d_captured).push_back(t);
  }
  return types;
}

// Checks the region that makes one pass. Its carried results go back into the carried values of the next pass, so they must
// have their types.
void check_pass(const Infer& f, const Graph& pass, std::size_t carried, LoopGradTypes* types) {
  require_inputs(f, "a pass", pass, types->pass);
  if (pass.outputs.size() < carried) f.fail("a pass gives fewer results than are carried");
  for (std::size_t i = 0; i < carried; ++i)
    if (result_type(pass, i) != types->pass[i + 1])
      f.fail(fmt::format("a pass makes {} of carried value {}, which is {}", to_string(result_type(pass, i)), i,
                         to_string(types->pass[i + 1])));
  for (std::size_t i = carried; i < pass.outputs.size(); ++i) {
    const Type t = result_type(pass, i);
    if (!is_floating(t.dtype)) continue;
    types->d_passes.push_back(t);
    types->d_stacked.push_back(checked_stack_type(f, types->trips, t));
  }
}

// Checks the operands that are gradients: those of carried results, of captured operands, and of stacked results.
void require_gradients(const Infer& f, std::size_t first, const LoopGradTypes& types) {
  std::vector<Type> wanted;
  for (const auto* list : {&types.d_carried, &types.d_captured, &types.d_stacked})
    wanted.insert(wanted.end(), list->begin(), list->end());
  if (f.inputs.size() - first != wanted.size())
    f.fail(fmt::format("takes {} gradients, got {}", wanted.size(), f.inputs.size() - first));
  for (std::size_t k = 0; k < wanted.size(); ++k)
    if (f.inputs[first + k] != wanted[k])
      f.fail(fmt::format("operand {} is a gradient of type {}, not {}", first + k, to_string(wanted[k]),
                         to_string(f.inputs[first + k])));
}

void infer_loop_grad(Infer& f) {
  const auto& a = f.attributes<LoopGradAttrs>();
  check_loop_grad_counts(f, a);
  LoopGradTypes types = loop_grad_operands(f, a);
  check_pass(f, *f.regions[0], static_cast<std::size_t>(a.carried), &types);
  require_gradients(f, types.pass.size(), types);
  const Graph& back = *f.regions[1];
  std::vector<Type> wanted = types.pass;
  for (const auto* list : {&types.d_carried, &types.d_captured, &types.d_passes})
    wanted.insert(wanted.end(), list->begin(), list->end());
  require_inputs(f, "the gradient of a pass", back, wanted);
  f.outputs = types.d_carried;
  f.outputs.insert(f.outputs.end(), types.d_captured.begin(), types.d_captured.end());
  const std::size_t handed = f.outputs.size();
  f.outputs.insert(f.outputs.end(), types.d_scanned.begin(), types.d_scanned.end());
  if (back.outputs.size() != f.outputs.size())
    f.fail(fmt::format("the gradient of a pass gives {} results, not {}", back.outputs.size(), f.outputs.size()));
  for (std::size_t i = 0; i < f.outputs.size(); ++i) {
    const Type t = i < handed ? f.outputs[i] : slice_type(f.outputs[i]);
    if (result_type(back, i) != t)
      f.fail(
          fmt::format("result {} of the gradient of a pass is {}, not {}", i, to_string(result_type(back, i)), to_string(t)));
  }
}

}  // namespace
}  // namespace tapedeck

#define TAPEDECK_DEFINE_OPS
#include <tapedeck/engine/ops/control.h>
