// The definition of an op. One block in engine/ops/<family>.h and .cpp states everything about one op.
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

// A graph nested in a node, such as the body of a loop or a branch. A region is closed: values from outside enter it as
// operands of the node. It has no state and no updates. It is immutable, and copies of a graph share it.
using Region = std::shared_ptr<const Graph>;

enum Trait : std::uint32_t {
  kElementwise = 1u << 0,     // output element i depends on element i of each (broadcast) input only
  kCheap = 1u << 1,           // limited by memory: recomputing it costs about one pass over the bytes
  kView = 1u << 2,            // output 0 can be a view of input 0's bytes (see Op::view)
  kRandom = 1u << 3,          // draws from an rng operand, but is pure: equal operands and attributes give equal bits
  kEffect = 1u << 4,          // has an effect outside the graph: it is never dropped, merged or recomputed
  kAnyStrides = 1u << 5,      // the kernel takes inputs of any strides
  kMatrixStrides = 1u << 6,   // the kernel takes row-major and column-major matrices
  kDeclaredTypes = 1u << 7,   // the graph text or the user states the output types; they do not follow from the inputs
  kNoGradient = 1u << 8,      // no gradient flows; asking for one is not an error (comparisons, integer results)
  kZeroCost = 1u << 9,        // moves so few bytes that its cost is zero
  kPlanOnly = 1u << 10,       // a placeholder that passes leave alone: `opaque`, `custom_gradient`
  kNativeHalf = 1u << 11,     // the kernel takes f16 and bf16; other kernels run in f32 on converted operands (kernels/half.h)
  kLowPrecision = 1u << 12,   // autocast casts floating operands to its low dtype (products, convolutions)
  kFullPrecision = 1u << 13,  // autocast casts f16 and bf16 operands to f32 (losses, exponentials, statistics)
  kCopy = 1u << 14,           // the result is operand 0, bit for bit, in bytes of its own
  kConversion = 1u << 15,     // the result is operand 0 in the dtype of the result
  kBroadcast = 1u << 16,      // the result is operand 0, repeated until it has the shape of the result
  kOwnSegment = 1u << 17,     // never runs in one segment with other nodes: its time depends on more than its types
  kSampleTypes = 1u << 18,    // types in its regions are those of one run: no pass rewrites a region, no plan lays it out
  kHostCall = 1u << 19,       // calls a function of this process: no file can hold the node
  kTiled = 1u << 20,          // its region runs tile by tile as one kernel: no pass rewrites the region, no plan lays it out
};

// An in-place rule: output `output` may be written over the bytes of input `input` if no later node reads that input.
struct InplacePair {
  std::int8_t output = -1;
  std::int8_t input = -1;
};

// The inputs and results of type inference. For a kDeclaredTypes op, `outputs` holds the declared types at the start.
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
  double bytes = 0;  // bytes read and written
  double us = -1;    // if >= 0: the cost is exactly this many microseconds, and flops and bytes do not count
};

// Computes where a view lies in the bytes of its input: the offset and the strides of the output, in elements, from the
// strides of the input. Returns false if no strides can express the view (a reshape of a transposed tensor). Then the kernel
// copies.
using ViewRule = bool (*)(const Type& input, const std::int64_t* input_strides, const void* attrs, const Type& output,
                          std::int64_t* offset, std::int64_t* output_strides);

// The opposite of a view, for ops that only join their operands (concat, pad). It computes where the operands lie in result
// 0: it writes one offset for each operand, in elements, from the strides of the result. Every operand has as many dimensions
// as the result, and it has the strides of the result in its place. The places of different operands have no element in
// common. So the node that makes an operand may write it there directly, if the plan says so (capture/analysis/parts.h). The
// kernel of the join writes results of any strides, and skips operands that already lie in their places. O(operands).
using PartRule = void (*)(std::span<const Type> inputs, const void* attrs, const std::int64_t* result_strides,
                          std::int64_t* offsets);

// The operands and results whose images may lie apart from each other in a wider buffer. Such a tensor may have any stride in
// its first dimension (for a result: any stride at which images do not overlap) and is dense in the others. Bit i stands for
// operand or result i.
struct BatchStrides {
  std::uint32_t inputs = 0;
  std::uint32_t outputs = 0;
};

// The opposite of a view, for writes: returns `base` with the elements of the view replaced by `piece`, made from ordinary
// ops. It is recorded when a view is written in place, so that the base gets the new elements and gradients flow through the
// write.
using UnviewRule = Tensor (*)(const Tensor& base, const Tensor& piece, const void* attrs, Site site);

// Runs a node that has regions, by interpreting the regions node by node (control/interpret.h). The results have the types
// `outputs`. They may share bytes with operands.
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
  std::int8_t max_inputs = 0;  // -1: any number
  std::int8_t min_outputs = 1;
  std::int8_t max_outputs = 1;  // -1: any number
  std::int8_t n_regions = 0;    // of control flow (ops/control.h); such an op has `run` and no kernel
  const AttrSchema* attrs = nullptr;
  void (*infer)(Infer&) = nullptr;
  void (*vjp)(Vjp&) = nullptr;   // null without kNoGradient: asking for a gradient is an error that names the op
  const char* no_gradient = "";  // why there is no gradient; never empty if vjp is null
  Cost (*cost)(std::span<const Type> inputs, std::span<const Type> outputs, const void* attrs) = nullptr;  // null: bytes moved
  std::int64_t (*workspace)(std::span<const Type> inputs, std::span<const Type> outputs, const void* attrs) = nullptr;
  ViewRule view = nullptr;
  UnviewRule unview = nullptr;  // null for views that cannot be written (broadcasts)
  PartRule part = nullptr;      // null for ops that do not join operands
  bool joins_in_turn = false;   // whether op(a, b, c) equals op(op(a, b), c)
  BatchStrides batch_strides = {};
  double (*uniform)(const void* attrs) = nullptr;  // for ops whose result holds one number throughout: the number
  ControlRun run = nullptr;                        // for ops with regions
  Kernel kernels[kDeviceTypeCount] = {};
  int version = 1;
  std::vector<const char*> examples = {};  // such as "log(f32[3,5] in (0.1,4)) {attr=..}"; tests, fuzzers and benches run them
  int id = -1;                             // a dense number; the registry sets it

  bool is(std::uint32_t trait) const { return (traits & trait) != 0; }
};

// The registry of ops. Ops are registered at program start and when an op library is loaded. A registered op lives as long as
// the process, and its address never changes. Lookups are thread safe.
const Op* find_op(std::string_view name);  // null if unknown
std::vector<const Op*> all_ops();          // sorted by name
const Op& register_op(const Op& op);       // throws UsageError if the name is taken or a kernel is missing

// Runs type inference: checks the number of inputs and the attributes, then fills in `outputs`. Throws TypeError.
void infer_types(const Op& op, std::span<const Type> inputs, const void* attrs, std::vector<Type>& outputs,
                 std::span<const Region> regions = {});

// The cost model: microseconds on a nominal core. The cost depends on types and attributes only, so plans are the same on
// every machine.
double cost_us(const Op& op, std::span<const Type> inputs, std::span<const Type> outputs, const void* attrs);
// Bytes of workspace that the kernel needs. This includes the memory for converting half-precision operands.
std::int64_t workspace_bytes(const Op& op, std::span<const Type> inputs, std::span<const Type> outputs, const void* attrs);

// Whether the op's kernel must run in f32 on converted operands (kernels/half.h).
bool runs_in_f32(const Op& op, std::span<const Type> inputs, std::span<const Type> outputs);

}  // namespace TAPEDECK_API
