// The forward part as a chain of blocks: it is cut wherever at most one value crosses. Small values that cross too (running
// statistics) do not count; they stay stored. A block costs at least half of the mean node: a cheap node goes with the next
// one. In a plain chain every node is a block; in a residual net every residual block is one.
//
//     %a = exp(%x) | %b = tanh(%a), %c = mul(%a, %b) | %d = exp(%c)        %a and %c are the necks of the first two blocks
#pragma once

#include <tapedeck/capture/planner/facts/facts.h>
#include <tapedeck/capture/planner/rematerialize/repeated_runs.h>

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

namespace tapedeck {

struct ChainBlock {
  std::vector<NodeId> to_neck;   // nodes of the block that make its neck from the neck before, ascending
  std::vector<NodeId> to_later;  // nodes of the block that make what later phases read of it, ascending
  ValueId neck = kNone;          // the value that crosses its end; kNone: nothing does
  bool inside_is_read = false;   // later phases read values of the block beside its neck
};

struct ChainBlocks {
  std::vector<ChainBlock> blocks;
  std::vector<std::int32_t> block_of;  // by root: the block whose node makes it; kNone for others
};

ChainBlocks chain_blocks(const Facts& facts);

// The runs with which the later phases get what they read of the chain while no more than `slots` necks are kept at a time
// beside the block at hand: the fewest runs of blocks, if later phases read the blocks in reverse order. No value if there are
// more than `most`.
std::optional<std::set<RepeatedRun>> runs_with_slots(const Facts& facts, const ChainBlocks& chain, std::int64_t slots,
                                                     std::size_t most);

}  // namespace tapedeck
