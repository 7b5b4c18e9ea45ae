// A pair of scans in blocks of passes. The forward keeps the carried values at the start of each block. The backward takes one
// block after the other: it runs the passes of the block again with their stacks, and walks back over them.
//
//     recorded      scan of 32 passes                   backward: scan of 32 passes, reads 32 slices of each stack
//     blocks of 8   scan of 4 blocks { scan of 8 }      backward: scan of 4 blocks { scan of 8, which keeps 8 slices;
//                   keeps 4 starts                                               backward of these 8 }
//
// Each pass of the forward runs once more, and the same kernels get the same operands in the same order.
#pragma once

#include <tapedeck/capture/planner/scans/rerun_scan.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tapedeck {

// The numbers of passes that a block may have: they divide the number of passes. Empty if the pair cannot run in blocks.
std::vector<std::int64_t> block_lengths(const RerunScan& scan);

// A pass over one block: the body of the scan over blocks.
struct BlockBody {
  Region body;
  std::vector<std::size_t> slices, captured;  // the operands after the carried ones, by their numbers in RerunScan
};

// Its results are the carried values, the stacks `stacked` (results of the recorded forward) of the block, and the carried
// values at its start.
BlockBody forward_block(const RerunScan& scan, std::int64_t passes, const std::vector<std::int32_t>& stacked, bool reverse);

// Its first scanned operands are the carried values at the starts of blocks. Its results are those of the recorded backward.
// `reverse`: of the forward and of the backward.
BlockBody backward_block(const RerunScan& scan, std::int64_t passes, const KeptStacks& kept, bool reverse, bool back_reverse);

}  // namespace tapedeck
