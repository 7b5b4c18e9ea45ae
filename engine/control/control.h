// Internals of control flow: what type inference, gradients, the interpreter and plans share about the ops of ops/control.h.
#pragma once

#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/kernels/attrs/control.h>

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace tapedeck {

// The numbers of operands and results of a loop, by kind:
//   operands        carried, scanned, captured
//   region inputs   the number i of the pass, carried, a slice of each scanned operand, captured
//   region results  carried, then the results to be stacked
struct LoopLayout {
  std::size_t carried = 0, scanned = 0, captured = 0, stacked = 0;
  std::int64_t trips = -1;  // the number of passes; -1 if it is not known before the loop runs
  std::size_t operands() const { return carried + scanned + captured; }
};
// Counts the operands and results of a loop. REQUIRES: the types of the node were inferred.
LoopLayout layout_of(const LoopAttrs& attrs, std::span<const Type> operands, const Graph& body);

// The largest number of passes that a loop_grad node may be told to walk back over; -1 = no bound. `operands` are those of the
// node. REQUIRES: the types of the node were inferred.
inline constexpr const char* kPassesOutOfRange = "the loop cannot have made so many passes";
std::int64_t most_passes(const LoopGradAttrs& attrs, std::span<const Type> operands);

Type slice_type(const Type& stack);                      // the type without the first axis
Type stack_type(std::int64_t trips, const Type& slice);  // the type with a new first axis of size `trips`

// ---- constants ----

// Throws ExecutionError if the constant that `node` names has a type but no data.
void require_data(const Graph& graph, const Node& node);
// The constant that `node` names as a tensor. Throws what require_data() throws.
Tensor constant_tensor(const Graph& graph, const Node& node);

// ---- traced regions ----

// A function that ran once on abstract tensors, with the tensors that it read from outside.
class RegionTrace {
 public:
  struct Input {
    std::string name;
    Type type;
  };
  // Runs `fn` once. Passes on the errors of `fn`. Throws CaptureError if `fn` writes a tensor from outside in place, or if it
  // runs backward() into such a tensor.
  RegionTrace(const char* op, const std::vector<Input>& inputs,
              const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& fn, Site site);
  ~RegionTrace();
  RegionTrace(RegionTrace&&) noexcept;

  const std::vector<Type>& results() const { return results_; }
  // The tensors from outside that the function reads, in the order of their first use. A small tensor that only the function
  // holds becomes a constant and is not in the list.
  std::vector<Tensor> reads() const;
  // The region. Its inputs are the declared ones and then one for each tensor of `captured`. REQUIRES: `captured` holds all
  // tensors of reads().
  Region region(const std::vector<Tensor>& captured) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  std::vector<Type> results_;
};

// ---- gradients of regions ----

// A scan's body that also returns the values that backward needs of each pass. *residuals is the number of these further
// results. They are values that the gradient reads, except scanned and captured operands, which exist anyway. `needs` tells
// for each operand whether it needs a gradient.
Region with_residuals(const Region& body, const LoopLayout& layout, const std::vector<bool>& needs, std::int64_t* residuals);

}  // namespace tapedeck
