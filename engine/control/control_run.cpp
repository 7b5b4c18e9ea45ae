// Runs loops and branches eagerly. The interpreter runs the region for each pass, on tensors; slices of scanned operands are
// views, and stacked results are written slice by slice:
//
//       scan    c1, y = body(0, c0, x[0])    stack[0] = y    c2, y = body(1, c1, x[1])    stack[1] = y    ...
//
// run_loop_grad runs the passes again and walks back over them (loop_checkpoints.h).
#include <tapedeck/engine/control/control_run.h>

#include <tapedeck/engine/control/control.h>
#include <tapedeck/engine/control/interpret.h>
#include <tapedeck/engine/control/loop_checkpoints.h>
#include <tapedeck/engine/eager/tensor_impl.h>
#include <tapedeck/engine/ir/error.h>

#include <fmt/format.h>

#include <cstring>
#include <string_view>

namespace tapedeck {
namespace {

using Carry = std::vector<Tensor>;

Tensor index_tensor(std::int64_t i) { return from_bytes({DType::i64, {}}, &i); }

bool truth(const Tensor& pred) { return *static_cast<const bool*>(pred.data()); }

// Slice i along the first axis. It shares the bytes of `stack`.
Tensor slice_of(const Tensor& stack, std::int64_t i) {
  return Tensor(detail::new_view(*stack.impl(), slice_type(stack.type()).shape, i * stack.strides()[0], stack.strides() + 1));
}

void put_slice(const Tensor& stack, std::int64_t i, const Tensor& slice) {
  const auto bytes = static_cast<std::size_t>(slice.bytes());
  slice.copy_to(static_cast<char*>(stack.impl()->data()) + static_cast<std::size_t>(i) * bytes, bytes,
                dtype_size(slice.dtype()));
}

Tensor zeros(const Type& type) {
  Tensor t = empty(type);
  if (type.bytes() > 0) std::memset(t.impl()->data(), 0, static_cast<std::size_t>(type.bytes()));
  return t;
}

// Runs the body of a loop, one pass at a time.
class Passes {
 public:
  Passes(const Graph& body, std::span<const Tensor> operands, std::size_t carried, std::size_t scanned)
      : body_(body),
        carried_(carried),
        scanned_(operands.subspan(carried, scanned)),
        captured_(operands.subspan(carried + scanned)) {}

  // The arguments of the body in pass i: i, carried, slices, captured, and then `more`.
  std::vector<Tensor> arguments(const Carry& c, std::int64_t i, std::span<const Tensor> more = {}) const {
    std::vector<Tensor> all{index_tensor(i)};
    all.insert(all.end(), c.begin(), c.end());
    for (const Tensor& x : scanned_) all.push_back(slice_of(x, i));
    all.insert(all.end(), captured_.begin(), captured_.end());
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  // Runs pass i. `c` becomes the next carried values. The results to be stacked go into slice i of `stacks`.
  void run(Carry& c, std::int64_t i, std::span<const Tensor> stacks) const {
    const std::vector<Tensor> results = interpret(body_, arguments(c, i)).outputs;
    for (std::size_t k = 0; k < stacks.size(); ++k) put_slice(stacks[k], i, results[carried_ + k]);
    c.assign(results.begin(), results.begin() + static_cast<std::ptrdiff_t>(carried_));
  }

 private:
  const Graph& body_;
  std::size_t carried_;
  std::span<const Tensor> scanned_, captured_;
};

std::size_t handed_gradients(const LoopGradAttrs& a, std::span<const Tensor> inputs) {
  const std::string_view needs = a.needs.view();
  const auto carried = static_cast<std::size_t>(a.carried), scanned = static_cast<std::size_t>(a.scanned);
  std::size_t n = 0;
  for (std::size_t i = 0; i < needs.size(); ++i)
    if (is_floating(inputs[i + 1].dtype()) && (i < carried || (i >= carried + scanned && needs[i] != '0'))) ++n;
  return n;
}

// The number of passes that the first operand of a loop_grad states. Throws ExecutionError if the loop cannot have made as
// many.
std::int64_t stated_passes(const LoopGradAttrs& a, std::span<const Tensor> inputs, Site site) {
  std::vector<Type> types;
  for (const Tensor& t : inputs) types.push_back(t.type());
  const std::int64_t trips = *static_cast<const std::int64_t*>(inputs[0].data()), most = most_passes(a, types);
  if (trips < 0 || (most >= 0 && trips > most))
    throw ExecutionError(error_text("loop_grad", fmt::format("{} ({})", kPassesOutOfRange, trips), site));
  return trips;
}

// Called if the loop made no pass. Sets the gradients of captured operands that began with -0 to zero.
void begin_at_zero(const LoopGradAttrs& a, std::span<const Tensor> inputs, std::vector<Tensor>* handed) {
  const std::string_view needs = a.needs.view();
  const auto carried = static_cast<std::size_t>(a.carried), scanned = static_cast<std::size_t>(a.scanned);
  std::size_t k = 0;
  for (std::size_t i = 0; i < needs.size(); ++i) {
    if (!is_floating(inputs[i + 1].dtype()) || (i >= carried && (i < carried + scanned || needs[i] == '0'))) continue;
    if (i >= carried && needs[i] == '2') (*handed)[k] = zeros((*handed)[k].type());
    ++k;
  }
}

std::vector<Tensor> new_stacks(std::span<const Type> types) {
  std::vector<Tensor> stacks;
  for (const Type& t : types) stacks.push_back(zeros(t));
  return stacks;
}

}  // namespace

std::vector<Tensor> run_while(std::span<const Region> regions, std::span<const Tensor> inputs, const void* attrs,
                              std::span<const Type> outputs, Site) {
  const auto& a = *static_cast<const LoopAttrs*>(attrs);
  const auto n = static_cast<std::size_t>(a.carried);
  const Passes passes(*regions[1], inputs, n, 0);
  const std::vector<Tensor> stacks = new_stacks(outputs.subspan(1 + n));
  Carry c(inputs.begin(), inputs.begin() + a.carried);
  std::int64_t i = 0;
  while ((a.trips < 0 || i < a.trips) && truth(interpret(*regions[0], passes.arguments(c, i)).outputs[0]))
    passes.run(c, i++, stacks);
  std::vector<Tensor> results{index_tensor(i)};
  results.insert(results.end(), c.begin(), c.end());
  results.insert(results.end(), stacks.begin(), stacks.end());
  return results;
}

std::vector<Tensor> run_scan(std::span<const Region> regions, std::span<const Tensor> inputs, const void* attrs,
                             std::span<const Type> outputs, Site) {
  const auto& a = *static_cast<const LoopAttrs*>(attrs);
  const auto n = static_cast<std::size_t>(a.carried);
  const Passes passes(*regions[0], inputs, n, static_cast<std::size_t>(a.scanned));
  const std::int64_t trips = a.scanned > 0 ? inputs[n].size(0) : a.trips;
  const std::vector<Tensor> stacks = new_stacks(outputs.subspan(n));
  Carry c(inputs.begin(), inputs.begin() + a.carried);
  for (std::int64_t k = 0; k < trips; ++k) passes.run(c, a.reverse ? trips - 1 - k : k, stacks);
  c.insert(c.end(), stacks.begin(), stacks.end());
  return c;
}

std::vector<Tensor> run_cond(std::span<const Region> regions, std::span<const Tensor> inputs, const void*,
                             std::span<const Type>, Site) {
  return interpret(*regions[truth(inputs[0]) ? 0 : 1], inputs.subspan(1)).outputs;
}

std::vector<Tensor> run_loop_grad(std::span<const Region> regions, std::span<const Tensor> inputs, const void* attrs,
                                  std::span<const Type> outputs, Site site) {
  const auto& a = *static_cast<const LoopGradAttrs*>(attrs);
  const std::size_t n = a.needs.view().size(), carried = static_cast<std::size_t>(a.carried);
  const std::int64_t trips = stated_passes(a, inputs, site);
  const Passes passes(*regions[0], inputs.subspan(1, n), carried, static_cast<std::size_t>(a.scanned));
  // `d` has the gradients that are handed from pass to pass: of carried and of captured operands. The gradients of stacked
  // results follow in `inputs` and are read slice by slice.
  const std::size_t handed = handed_gradients(a, inputs);
  std::vector<Tensor> d(inputs.begin() + static_cast<std::ptrdiff_t>(1 + n),
                        inputs.begin() + static_cast<std::ptrdiff_t>(1 + n + handed));
  const std::span<const Tensor> d_stacked = inputs.subspan(1 + n + handed);
  const std::vector<Tensor> d_slices = new_stacks(outputs.subspan(handed));
  auto at = [&](std::int64_t k) { return a.reverse ? trips - 1 - k : k; };
  walk_back(
      trips, a.checkpoint, Carry(inputs.begin() + 1, inputs.begin() + 1 + a.carried),
      [&](const Carry& c, std::int64_t k) {
        Carry next = c;
        passes.run(next, at(k), {});
        return next;
      },
      [&](const Carry& c, std::int64_t k) {
        std::vector<Tensor> more = d;
        for (const Tensor& t : d_stacked) more.push_back(slice_of(t, at(k)));
        const std::vector<Tensor> results = interpret(*regions[1], passes.arguments(c, at(k), more)).outputs;
        d.assign(results.begin(), results.begin() + static_cast<std::ptrdiff_t>(handed));
        for (std::size_t i = 0; i < d_slices.size(); ++i) put_slice(d_slices[i], at(k), results[handed + i]);
      });
  if (trips == 0) begin_at_zero(a, inputs, &d);
  d.insert(d.end(), d_slices.begin(), d_slices.end());
  return d;
}

}  // namespace tapedeck
