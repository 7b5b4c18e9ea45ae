// Inside control flow: what inference, gradients, the interpreter and plans share about the nodes of ops/control.h.
#pragma once

#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/kernels/attrs/control.h>

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace tapedeck {

// How the operands and results of a loop are sorted. Operands: carried, scanned, captured; region inputs: i and these, slices
// for what is scanned; region results: carried, stacked.
struct LoopLayout {
  std::size_t carried = 0, scanned = 0, captured = 0, stacked = 0;
  std::int64_t trips = -1;  // -1: not known before it runs
  std::size_t operands() const { return carried + scanned + captured; }
};
// REQUIRES: the node's types were inferred.
LoopLayout layout_of(const LoopAttrs& attrs, std::span<const Type> operands, const Graph& body);

Type slice_type(const Type& stack);                      // without the first axis
Type stack_type(std::int64_t trips, const Type& slice);  // rank + 1

// ---- traced regions ----

// A function run once on abstract tensors, and what it read from outside.
class RegionTrace {
 public:
  struct Input {
    std::string name;
    Type type;
  };
  // Throws what the function throws; CaptureError if it writes an outside tensor in place, or runs backward() into one.
  RegionTrace(const char* op, const std::vector<Input>& inputs,
              const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& fn, Site site);
  ~RegionTrace();
  RegionTrace(RegionTrace&&) noexcept;

  const std::vector<Type>& results() const { return results_; }
  // Tensors from outside that it reads, in order; small ones that only it holds are constants and not listed.
  std::vector<Tensor> reads() const;
  // The region, with an input for each of `captured` after those declared. REQUIRES: `captured` holds all that it reads.
  Region region(const std::vector<Tensor>& captured) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  std::vector<Type> results_;
};

// ---- gradients of regions ----

// A scan's body that also gives what backward needs of each pass: `residuals` more results. Only values that a gradient reads,
// and no operands that are scanned or captured, which are there anyway. `needs`: by operand, whether it needs a gradient.
Region with_residuals(const Region& body, const LoopLayout& layout, const std::vector<bool>& needs, std::int64_t* residuals);

}  // namespace tapedeck
