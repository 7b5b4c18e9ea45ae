// The registry of ops, and the functions that answer questions about any op: its output types, its cost, its workspace.
//
//       cost_us(matmul, f32[64,784] x f32[784,10]) = max(flops / kFlopsPerUs, bytes / kBytesPerUs) + kDispatchUs
#include <tapedeck/engine/ir/op.h>

#include <tapedeck/engine/ir/half_calls.h>
#include <tapedeck/kernels/checked_math.h>
#include <tapedeck/kernels/cpu/elementwise/half_tiles.h>
#include <tapedeck/kernels/cpu/elementwise/tiles.h>
#include <tapedeck/kernels/half.h>

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <mutex>
#include <unordered_map>

namespace tapedeck {
namespace {

struct Registry {
  std::mutex mutex;
  std::deque<Op> ops;  // a deque keeps the address of each op
  std::unordered_map<std::string_view, const Op*> by_name;
};

Registry& registry() {
  static Registry* r = new Registry;  // never destroyed, so that it outlives every static op
  return *r;
}

// The nominal core of the cost model. Plans depend on these numbers, so the numbers are constants and not measurements.
constexpr double kFlopsPerUs = 100e3;  // 100 GF/s
constexpr double kBytesPerUs = 20e3;   // 20 GB/s
constexpr double kDispatchUs = 0.05;

}  // namespace

const Op& register_op(const Op& op) {
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  if (r.by_name.count(op.name)) throw UsageError(fmt::format("op '{}' is registered twice", op.name));
  if (!op.infer && !op.is(kDeclaredTypes)) throw UsageError(fmt::format("op '{}' has no type inference", op.name));
  if (!op.kernels[0] && !op.is(kView) && !op.is(kDeclaredTypes) && op.n_regions == 0)
    throw UsageError(fmt::format("op '{}' has no cpu kernel", op.name));
  r.ops.push_back(op);
  r.ops.back().id = static_cast<int>(r.ops.size()) - 1;
  r.by_name.emplace(r.ops.back().name, &r.ops.back());
  return r.ops.back();
}

const Op* find_op(std::string_view name) {
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  auto it = r.by_name.find(name);
  return it == r.by_name.end() ? nullptr : it->second;
}

std::vector<const Op*> all_ops() {
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  std::vector<const Op*> ops;
  for (const Op& op : r.ops) ops.push_back(&op);
  std::sort(ops.begin(), ops.end(), [](const Op* a, const Op* b) { return std::string_view(a->name) < b->name; });
  return ops;
}

void Infer::fail(const std::string& message) const { throw TypeError(error_text(op.name, message, {})); }

void infer_types(const Op& op, std::span<const Type> inputs, const void* attrs, std::vector<Type>& outputs,
                 std::span<const Region> regions) {
  Infer infer{op, inputs, attrs, outputs, regions};
  const int n = static_cast<int>(inputs.size());
  if (n < op.min_inputs || (op.max_inputs >= 0 && n > op.max_inputs)) {
    const std::string wanted = op.max_inputs < 0                ? fmt::format("at least {}", op.min_inputs)
                               : op.min_inputs == op.max_inputs ? fmt::format("{}", op.min_inputs)
                                                                : fmt::format("{} to {}", op.min_inputs, op.max_inputs);
    infer.fail(fmt::format("takes {} operand{}, got {}", wanted, wanted == "1" ? "" : "s", n));
  }
  if ((op.attrs != nullptr) != (attrs != nullptr)) infer.fail(op.attrs ? "attributes are missing" : "takes no attributes");
  if (static_cast<int>(regions.size()) != op.n_regions)
    infer.fail(
        fmt::format("takes {} region{}, got {}", static_cast<int>(op.n_regions), op.n_regions == 1 ? "" : "s", regions.size()));
  if (op.infer) op.infer(infer);
  for (const Type& t : outputs)
    if (checked_bytes(t.dtype, {t.shape.sizes, static_cast<std::size_t>(t.shape.rank)}) < 0)
      infer.fail(fmt::format("the result is too large: {}", to_string(t)));
  const int m = static_cast<int>(outputs.size());
  if (m < op.min_outputs || (op.max_outputs >= 0 && m > op.max_outputs)) infer.fail(fmt::format("cannot have {} results", m));
}

namespace {

double bytes_moved(std::span<const Type> inputs, std::span<const Type> outputs) {
  double bytes = 0;
  for (const Type& t : inputs) bytes += static_cast<double>(t.bytes());
  for (const Type& t : outputs) bytes += static_cast<double>(t.bytes());
  return bytes;
}

}  // namespace

double cost_us(const Op& op, std::span<const Type> inputs, std::span<const Type> outputs, const void* attrs) {
  if (op.is(kZeroCost) || (op.is(kView) && !op.cost)) return 0;
  if (!op.cost) return bytes_moved(inputs, outputs) / kBytesPerUs + kDispatchUs;
  const Cost cost = op.cost(inputs, outputs, attrs);
  if (cost.us >= 0) return cost.us;
  return std::max(cost.flops / kFlopsPerUs, cost.bytes / kBytesPerUs) + kDispatchUs;
}

bool runs_in_f32(const Op& op, std::span<const Type> inputs, std::span<const Type> outputs) {
  if (op.is(kNativeHalf) || op.is(kPlanOnly) || op.is(kView)) return false;
  const auto half = [](const Type& t) { return kernels::is_half(t.dtype); };
  return std::any_of(inputs.begin(), inputs.end(), half) || std::any_of(outputs.begin(), outputs.end(), half);
}

namespace {

bool runs_tile_by_tile(const Op& op) {
  static_assert(std::numeric_limits<decltype(op.max_inputs)>::max() <= kernels::cpu::kMostTileOperands);
  return op.is(kElementwise) && op.max_outputs == 1 && !op.workspace && op.max_inputs >= 1;
}

}  // namespace

Kernel f32_runner(const Op& op) { return runs_tile_by_tile(op) ? &kernels::cpu::run_elementwise_in_f32 : &kernels::run_in_f32; }

namespace {

// The types that a kernel sees when it runs in f32. Adds to *scratch the bytes that the conversion of these tensors takes.
std::vector<Type> in_f32(std::span<const Type> types, std::int64_t* scratch) {
  std::vector<Type> converted(types.begin(), types.end());
  for (Type& t : converted) {
    if (!kernels::is_half(t.dtype)) continue;
    t.dtype = DType::f32;
    *scratch = limited_sum({*scratch, kernels::half_scratch(t.numel())});
  }
  return converted;
}

std::int64_t workspace_by_rule(const Op& op, std::span<const Type> inputs, std::span<const Type> outputs, const void* attrs) {
  return op.workspace ? op.workspace(inputs, outputs, attrs) : 0;
}

std::int64_t any_workspace(const Op& op, std::span<const Type> inputs, std::span<const Type> outputs, const void* attrs) {
  if (!runs_in_f32(op, inputs, outputs)) return workspace_by_rule(op, inputs, outputs, attrs);
  if (runs_tile_by_tile(op)) return 0;
  std::int64_t scratch = 0;
  const std::vector<Type> in = in_f32(inputs, &scratch), out = in_f32(outputs, &scratch);
  return limited_sum({scratch, workspace_by_rule(op, in, out, attrs)});
}

}  // namespace

// Throws TypeError if the workspace has more bytes than a type may have.
std::int64_t workspace_bytes(const Op& op, std::span<const Type> inputs, std::span<const Type> outputs, const void* attrs) {
  const std::int64_t bytes = any_workspace(op, inputs, outputs, attrs);
  if (bytes > kMaxTypeBytes) throw TypeError(error_text(op.name, "the kernel needs more than 2^46 bytes of workspace", {}));
  return bytes;
}

}  // namespace tapedeck
