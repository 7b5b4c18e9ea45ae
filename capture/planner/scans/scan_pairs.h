// Scans that keep values for backward, each with the scan that reads them:
//
//     %c, %r = scan(%a, %w) {..}                        the forward: %r has one slice for each pass
//     ..
//     %d, %e = scan(%dc, %r, %w) {reverse=true, ..}     the backward: it goes the other way, and reads the slices of %r
#pragma once

#include <tapedeck/engine/control/control.h>
#include <tapedeck/engine/ir/graph.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tapedeck {

struct ScanPair {
  NodeId forward = kNone, backward = kNone;
  LoopLayout ahead, back;            // of the forward and of the backward
  std::vector<std::int32_t> stacks;  // by scanned operand of the backward: which result of the forward it is, or kNone
};

// The pairs, in the order of their backwards. No scan is in two of them: a scan whose slices two others read is left out. If a
// backward reads slices of several scans, its forward is the one of which it reads the most bytes. O(nodes and operands).
std::vector<ScanPair> find_scan_pairs(const Graph& graph);

// Why the values that the pair keeps cannot be computed again, in words that go on from "%loop "; empty if they can.
std::string why_values_stay(const Graph& graph, const ScanPair& pair);

}  // namespace tapedeck
