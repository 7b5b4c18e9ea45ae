// An op is the definition of a computation: everything about it stands in one block in engine/ops/<family>.h.
#pragma once

#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ir/type.h>
#include <tapedeck/kernels/attrs.h>
#include <tapedeck/kernels/export.h>
#include <tapedeck/kernels/kernel.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace tapedeck TAPEDECK_API {

class Graph;
class Tensor;
class Vjp;

// A graph nested in a node: the body of a loop, a branch. Closed: outer values enter as operands. It has no state and no
// updates, is immutable, and copies of a graph share it.
using Region = std::shared_ptr<const Graph>;

enum Trait : std::uint32_t {
  kElementwise = 1u << 0,    // output element i depends on element i of each (broadcast) input only
  kCheap = 1u << 1,          // memory-bound: recomputing costs about a pass over the bytes
  kView = 1u << 2,           // output 0 can be a window on input 0's bytes (see Op::view)
  kRandom = 1u << 3,         // draws from an rng operand; still pure: equal operands and attributes, equal bits
  kEffect = 1u << 4,         // has an effect outside the graph: never dropped, merged or recomputed
  kAnyStrides = 1u << 5,     // kernels take inputs of any strides
  kMatrixStrides = 1u << 6,  // kernels take row- or column-major matrices
  kDeclaredTypes = 1u << 7,  // output types come from the declaration (graph text, the user), not from the inputs
  kNoGradient = 1u << 8,     // no gradient flows, and asking for one is not an error (comparisons, integer results)
  kZeroCost = 1u << 9,       // moves nothing worth counting
  kPlanOnly = 1u << 10,      // placeholder: `opaque`
  kNativeHalf = 1u << 11,  // kernels take f16 and bf16 themselves; others are run in f32 on converted operands (kernels/half.h)
  kLowPrecision = 1u << 12,   // under autocast, floating operands are cast to its dtype (products, convolutions)
  kFullPrecision = 1u << 13,  // under autocast, f16 and bf16 operands are cast to f32 (losses, exponentials, statistics)
};

// In-place rule: output `output` may take over the bytes of input `input` if nobody reads that input afterwards.
struct InplacePair {
  std::int8_t output = -1;
  std::int8_t input = -1;
};

// What inference sees and fills in. For kDeclaredTypes ops `outputs` comes filled with the declared types.
struct Infer {
  const struct Op& op;
  std::span<const Type> inputs;
  const void* attrs;
  std::vector<Type>& outputs;
  std::span<const Region> regions = {};

  template <class A>
  const A& attributes() const {
    return *static_cast<const A*>(attrs);
  }
  // Throws TypeError "[op] message".
  [[noreturn]] void fail(const std::string& message) const;
};

struct Cost {
  double flops = 0;
  double bytes = 0;  // moved, in and out
  double us = -1;    // if >= 0, the cost is exactly this many microseconds, whatever the flops and bytes
};

// How a view op windows its input: the output's offset and strides in elements, from the input's.
// Returns false if these strides cannot express the view (a reshape of a transposed tensor): then the kernel copies.
using ViewRule = bool (*)(const Type& input, const std::int64_t* input_strides, const void* attrs, const Type& output,
                          std::int64_t* offset, std::int64_t* output_strides);

// The mirror of a view, of ops that do nothing but join: the window of result 0 that holds operand `input`, in elements, from
// the result's strides. Windows of different operands have no element in common. Whoever makes an operand may write it there at
// once (the plan decides: capture/analysis/parts.h); the kernel writes results of any strides, and skips operands that lie in
// their windows already.
using PartRule = void (*)(std::span<const Type> inputs, int input, const void* attrs, const std::int64_t* result_strides,
                          std::int64_t* offset, std::int64_t* strides);

// Operands and results that may lie image by image in something wider: the first dimension has any stride (of results, one at
// which images do not overlap), the others are dense. Bits by index.
struct BatchStrides {
  std::uint32_t inputs = 0;
  std::uint32_t outputs = 0;
};

// The inverse of a view for writing: `base` with the window replaced by `piece`, as ordinary ops. Recorded when a view is
// written in place, so that the write reaches the base (and gradients flow through it).
using UnviewRule = Tensor (*)(const Tensor& base, const Tensor& piece, const void* attrs, Site site);

// How a node with regions runs: its regions are interpreted, node by node (interpret.h). Results of the types inferred; they
// may share bytes with operands.
using ControlRun = std::vector<Tensor> (*)(std::span<const Region> regions, std::span<const Tensor> inputs, const void* attrs,
                                           std::span<const Type> outputs, Site site);

enum class DeviceType : std::uint8_t { cpu, cuda };
inline constexpr int kDeviceTypeCount = 2;

struct Op {
  const char* name = "";
  const char* doc = "";
  std::uint32_t traits = 0;
  std::vector<InplacePair> inplace = {};
  std::int8_t min_inputs = 0;
  std::int8_t max_inputs = 0;  // -1 = any number
  std::int8_t min_outputs = 1;
  std::int8_t max_outputs = 1;  // -1 = any number
  std::int8_t n_regions = 0;    // control flow (ops/control.h): has `run`, and no kernel
  const AttrSchema* attrs = nullptr;
  void (*infer)(Infer&) = nullptr;
  void (*vjp)(Vjp&) = nullptr;   // null and no kNoGradient: asking for a gradient is an error naming the op
  const char* no_gradient = "";  // why there is none; never empty where vjp is null
  Cost (*cost)(std::span<const Type> inputs, std::span<const Type> outputs, const void* attrs) = nullptr;  // null: bytes moved
  std::int64_t (*workspace)(std::span<const Type> inputs, std::span<const Type> outputs, const void* attrs) = nullptr;
  ViewRule view = nullptr;
  UnviewRule unview = nullptr;  // views that cannot be written (broadcasts) have none
  PartRule part = nullptr;      // null for ops that join nothing
  bool joins_in_turn = false;   // the result for a, b, c is that for (the result for a, b), c
  BatchStrides batch_strides = {};
  ControlRun run = nullptr;  // of ops with regions
  Kernel kernels[kDeviceTypeCount] = {};
  int version = 1;
  std::vector<const char*> examples = {};  // "log(f32[3,5] in (0.1,4)) {attr=..}": tests, fuzzers and benches read these
  int id = -1;                             // dense, set by the registry

  bool is(std::uint32_t trait) const { return (traits & trait) != 0; }
};

// The registry. Ops are registered at start-up and when an op library is loaded; they live for the whole process, and their
// addresses are stable. Lookups are thread safe.
const Op* find_op(std::string_view name);  // null if unknown
std::vector<const Op*> all_ops();          // sorted by name
const Op& register_op(const Op& op);       // throws UsageError if the name is taken, or a kernel is missing

// Runs inference: checks the number of inputs and the attributes, fills in outputs. Throws TypeError.
void infer_types(const Op& op, std::span<const Type> inputs, const void* attrs, std::vector<Type>& outputs,
                 std::span<const Region> regions = {});

// The cost model: microseconds on a nominal core, a function of types and attributes only, so that plans are the same
// everywhere.
double cost_us(const Op& op, std::span<const Type> inputs, std::span<const Type> outputs, const void* attrs);
// Bytes of scratch a kernel needs, with what converting half-precision operands takes.
std::int64_t workspace_bytes(const Op& op, std::span<const Type> inputs, std::span<const Type> outputs, const void* attrs);

// Whether the op's kernel has to be run in f32 on converted operands (kernels/half.h).
bool runs_in_f32(const Op& op, std::span<const Type> inputs, std::span<const Type> outputs);

}  // namespace TAPEDECK_API
