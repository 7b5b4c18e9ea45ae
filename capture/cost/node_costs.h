// The cost of nodes: microseconds of the model and bytes of workspace, as functions of op, types and attributes only.
#pragma once

#include <tapedeck/engine/ir/graph.h>

#include <cstdint>
#include <vector>

namespace tapedeck {

struct Calibration;

// Estimated cost of every node, finite and >= 0: by the built-in model, or by the rates of a machine. cost_nodes()
// (cost_model.h) adds what a profile knows.
std::vector<double> node_costs(const Graph& graph, const Calibration* calibration = nullptr);

// The most that one node may cost. It is larger than any real computation, and a million such nodes still add up exactly.
inline constexpr double kMostUs = 1e15;
inline bool plausible_us(double us) { return us >= 0 && us <= kMostUs; }  // a NaN compares false
inline double sane_us(double us) { return us >= 0 ? (us < kMostUs ? us : kMostUs) : 0.0; }

// Scratch bytes that the kernel of a node without regions needs while it runs. A node with regions needs a frame for them:
// region_frames.h. Throws InvalidGraphError if the kernel needs more bytes than a type may have.
std::int64_t kernel_workspace(const Graph& graph, const Node& node);

}  // namespace tapedeck
