// The forward part of a step as strategies see it that make its values again for backward: which nodes belong to it, which of
// them may run again, and in which stage they then have to.
#pragma once

#include <tapedeck/capture/planner/facts/facts.h>
#include <tapedeck/capture/planner/rematerialize/repeated_runs.h>
#include <tapedeck/capture/planner/rematerialize/strategy.h>

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

namespace tapedeck {

// A clone, which a wish of the user or an earlier choice has put before its reader, stands for that reader.
bool is_forward(const Facts& facts, NodeId n);

// A wish says that no copy of the root, made in forward, may be kept for a later phase.
bool is_given_up(const Facts& facts, ValueId root);

// The result that a decision about the node names: the first one with bytes in the arena.
std::string named_result(const Facts& facts, NodeId n);

// Arena bytes of the node's results.
std::int64_t bytes_made(const Facts& facts, NodeId n);

// A node of the forward part whose run may be repeated, and whose results take bytes of the arena.
bool may_run_again(const Facts& facts, NodeId n);

// Whether everything outside of the arena that the node reads is still there at `stage`: no state is overwritten by then.
bool can_be_had_at(const Facts& facts, NodeId n, NodeId stage);

// By root: the first node of a later phase that reads it; kNever if none does.
std::vector<NodeId> first_later_readers(const Facts& facts);

// By node: the one stage in which a chosen node runs again, as late as it may: that of the first node of a later phase that
// reads its results, or of the first chosen node that runs again and reads them. kNone for other nodes, for nodes that nobody
// needs again, and for nodes that cannot run again there, or that would keep a value that a wish gives up. Two walks over the
// reads of all nodes.
std::vector<NodeId> stages_of_one_more_run(const Facts& facts, const std::vector<char>& chosen);

// The runs of the nodes that have a stage, as a set.
std::set<RepeatedRun> runs_in(const std::vector<NodeId>& stages);

// One choice of many values: every chosen node runs once more, in the stage above. Each of them gets a decision whose reason is
// reason(node, stage). There is one point beside the one that keeps all.
Choices choose_one_more_run(const Facts& facts, const Watch& watch, const std::vector<char>& chosen,
                            const std::function<std::string(NodeId node, NodeId stage)>& reason);

}  // namespace tapedeck
