// A scan without checkpoints, written anew so that it keeps less for backward. For the pass h' = tanh(h W + x):
//
//     recorded        the forward keeps h and tanh(..) of every pass, and the backward reads their slices
//     fewer stacks    the forward keeps h of every pass; each pass of the backward computes tanh(..) again, then its gradient
//     no stacks       the forward keeps nothing; the backward is a loop_grad, which runs the loop again and keeps h of some
//     passes
//     blocks          the forward keeps h at the start of each block of passes; the backward runs one block after the other
//     again, which keeps what is recorded, and walks back over it (scan_blocks.h)
//
// In each way the same kernels get the same operands, and gradients add up in the same order. So the bits are the same.
#pragma once

#include <tapedeck/capture/passes/splice.h>
#include <tapedeck/capture/planner/scans/scan_pairs.h>
#include <tapedeck/engine/ir/graph.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tapedeck {

// What the forward of a pair keeps for its backward.
struct KeptStacks {
  std::vector<std::int32_t> stacks;  // results of the recorded forward
  std::vector<std::size_t> carried;  // further ones: carried values before each pass, by their number
  std::int64_t bytes = 0;            // of all of them
  double again_us = 0;               // of the nodes that one pass of the backward computes again
};

class RerunScan {
 public:
  // An operand of the loops that are written, and the input of whole() that it is.
  struct Given {
    ValueId outside = kNone;
    ValueId inside = kNone;
  };
  // How the backward is a loop_grad: which of its values play which part.
  struct LoopGradForm {
    bool possible = false;
    std::vector<std::size_t> handed;  // the carried values of the backward, in the order of a loop_grad
    std::vector<std::size_t> sliced;  // its stacked results, likewise
    std::string needs;                // LoopGradAttrs::needs
  };

  // REQUIRES: why_values_stay() is empty.
  RerunScan(const Graph& graph, ScanPair pair);
  RerunScan(const RerunScan&) = delete;
  RerunScan& operator=(const RerunScan&) = delete;

  const ScanPair& pair() const { return pair_; }
  std::int64_t passes() const { return pair_.ahead.trips; }
  bool is_read_elsewhere(std::int32_t stack) const { return read_elsewhere_[static_cast<std::size_t>(stack)] != 0; }

  // As recorded first. Then each has one stack less than the one before, so that the bytes saved cost the fewest microseconds.
  // The last one keeps no stack that a pass can compute from its carried values.
  std::vector<KeptStacks> ladder() const;
  KeptStacks least() const;          // no stack but the carried values that the backward needs
  std::int64_t entry_bytes() const;  // of the tape of a loop_grad
  double advance_us() const;         // of one pass of the loop without the nodes that only stacked results need
  const LoopGradForm& loop_grad() const { return loop_grad_; }
  // Whether the passes can be grouped in blocks: they carry values, no pass reads its number, and no stack is an output of the
  // graph or the new value of a state.
  bool may_run_in_blocks() const { return may_run_in_blocks_; }
  double pass_us() const;  // of one pass of the forward, with all that the backward reads

  // One pass of the forward and then its backward in one graph, and its values: the number of the pass, carried values, slices
  // and captured values of the forward (those of the backward that are no stacks behind them), carried values of the backward.
  const Graph& whole() const { return whole_; }
  ValueId index() const { return 0; }
  const std::vector<Given>& carried() const { return carried_; }
  const std::vector<Given>& slices() const { return slices_; }
  const std::vector<Given>& captured() const { return captured_; }
  const std::vector<Given>& handed() const { return handed_; }
  const std::vector<ValueId>& made() const { return made_; }        // by result of the forward
  const std::vector<ValueId>& results() const { return results_; }  // by result of the backward

 private:
  void add_inputs(const Graph& graph, const Graph& pass, const Graph& back, Splice* ahead, Splice* behind, TakenNames* names);
  void find_loop_grad_form(const Graph& graph, TakenNames* names);
  KeptStacks with(std::vector<std::int32_t> stacks) const;

  ScanPair pair_;
  Graph whole_;
  std::vector<Given> carried_, slices_, captured_, handed_;
  std::vector<ValueId> made_, results_;
  std::vector<char> read_elsewhere_;  // by result of the forward: other nodes than the backward read it
  std::vector<double> node_us_;       // by node of whole_
  NodeId first_back_ = 0;             // the first node of whole_ that belongs to the backward
  LoopGradForm loop_grad_;
  bool may_run_in_blocks_ = false;
};

// A pair and the way in which it is written. `kept` null: the backward is a loop_grad with this checkpoint.
struct Rerun {
  const RerunScan* scan = nullptr;
  const KeptStacks* kept = nullptr;
  std::int64_t checkpoint = 0;
  std::int64_t block = 0;  // the passes of a block, within which `kept` is kept; 0: no blocks
};

// The graph, in which these pairs of scans are written anew. The results of the backward keep their names. REQUIRES: the scans
// are pairs of this graph, and each of them stands in one rerun.
Graph with_reruns(const Graph& graph, std::span<const Rerun> reruns);

}  // namespace tapedeck
