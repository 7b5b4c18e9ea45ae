#include <tapedeck/viewer/words/glossary.h>

#include <algorithm>

namespace tapedeck::viewer {

const std::vector<Explanation>& glossary() {
  static const std::vector<Explanation> table = {
      // ---- numbers of a plan ----
      {"peak", "The bytes that a replay of this plan holds: everything that is always there, and the arena."},
      {"external", "The bytes that are there through the whole step: parameters, state, constants, inputs and outputs."},
      {"arena", "The one block that all values in between share; its size is the highest address that one of them reaches."},
      {"lower bound",
       "The most bytes that are alive at once in this order of nodes: no placement of them can have a lower peak."},
      {"floor", "The least peak that any strategy here reaches for this graph: no budget below it can be met."},
      {"keep-all peak", "The peak of the plan that computes nothing twice and keeps every value until its last reader."},
      {"budget", "The most bytes that a replay may hold. The peak stays below it, or the plan says why it cannot."},
      {"recompute", "What a replay costs, as a multiple of the plan that computes nothing twice: ×1.000 is no extra work."},
      {"renderer", "How the pictures are drawn: in software, or by OpenGL where a GPU does it."},
      {"strategy", "The method that chose which values are computed again."},
      {"passes", "How much the graph was simplified before it was planned; the results have the same bits in any case."},
      {"nodes", "The nodes that a replay runs; those that compute a value again are counted."},
      {"recomputed", "Computed again by clones, just before it is read, instead of kept until then."},
      {"cost", "The microseconds of all nodes by the cost model, and what share of keeping everything that is."},
      {"costs", "Where the microseconds come from: estimates, the rates of this machine, or a measured profile."},
      {"order", "How the order of the nodes was found."},
      {"segments", "The groups of nodes that run as one task each."},
      {"infeasible", "Why no plan fits the budget."},
      {"measured peak", "The most bytes that a replay held, counted by its allocator, and by how much that is above the plan."},
      {"measured live",
       "The most bytes that were alive at once in the replays, from the times at which nodes ran, and by how much that is "
       "above "
       "the lower bound of the plan."},
      {"measured step", "The median time of a whole step in the replays, the fastest and the slowest, and their number."},
      {"most live",
       "The most bytes that are alive at once. It is the lower bound of the plan: the peak is that, and what placement adds."},
      {"lowers",
       "What a change of one value alone would do to the most bytes that are alive at once, as `tapedeck plan --explain peak` "
       "says it."},
      {"alive", "Everything that holds bytes while this node runs. The sum is the height of the curve there, to the byte."},
      // ---- the regions of a node ----
      {"runs it", "How often the node runs its region in one step."},
      {"keeps", "Which carried values or results of passes are kept for backward; what is not kept is computed again."},
      {"body", "The nodes that one pass of the loop runs. They have a plan of their own, whose arena lies in the workspace."},
      {"condition", "The nodes that say before each pass whether the loop goes on."},
      {"if true", "The nodes that run if the first operand is true."},
      {"if false", "The nodes that run if the first operand is false."},
      {"pass", "The nodes of one pass of the loop, which run again where its carried values were not kept."},
      {"gradient of a pass", "The nodes that compute the gradient of one pass, from the last pass to the first."},
      {"inside", "The nodes that this node runs as one: their values take no bytes of the plan."},
      {"memory of a region",
       "One run of a loop's body, of a branch, by its own plan. Its arena and its results lie in a frame in the workspace of "
       "the node; all passes use the same frame, one after the other."},
      {"arena of a region", "Values that one run makes and reads. They lie in the frame, and the next pass writes over them."},
      {"inputs of a region",
       "What a run reads: carried values, and values from outside of the loop. They lie outside of the frame."},
      {"results of a region",
       "What a run returns: the carried values for the next pass, and results of the node. They lie in the frame."},
      {"units", "B is bytes; KiB, MiB and GiB are 1024s of them. us is microseconds; 1000 us are 1 ms."},
      // ---- phases of the strip below the pictures ----
      {"phase forward", "Nodes that compute the results of the model and the loss."},
      {"phase backward", "Nodes that compute gradients, in the reverse order of forward."},
      {"phase update", "Nodes that compute the new values of the state: the optimizer, statistics, counters."},
      {"phase recompute", "Clones: nodes that compute a value again, which the plan did not keep."},
      // ---- the picture of cost over peak ----
      {"tradeoff peak", "The bytes that a replay of the plan holds."},
      {"tradeoff cost", "What a replay costs, as a multiple of the plan that computes nothing twice."},
      {"above bound", "By how much the cost is above the bound: no plan of this budget costs less than the bound."},
      {"tradeoff bound", "No plan that fits costs less than this line. Nobody knows whether one can reach it."},
      {"strategy auto", "Takes the best plan of all other strategies: this is what the viewer plans with."},
      {"strategy none", "Keeps every value until its last reader."},
      // ---- roles ----
      {"parameter/state", "Lives from step to step: parameters, moments, statistics, counters. Its bytes are always held."},
      {"input", "Given by the caller for this step. Its bytes are held through the whole step."},
      {"constant", "A number or a tensor of the graph itself. Its bytes are held through the whole step."},
      {"output", "Returned to the caller. Its bytes are held through the whole step."},
      {"saved", "Made in forward and kept until backward reads it. Less memory means fewer of these bytes."},
      {"gradient", "Made in backward."},
      {"temporary", "Read soon after it is made; its bytes are free again then."},
      // ---- facts about a value ----
      {"name", "The name of the value. All runs that compute it share the name, and a later one says which run it is."},
      {"type", "The type of the elements, and the lengths of the dimensions."},
      {"bytes", "The bytes that all elements take; of a node, those of all its results."},
      {"role", "What the bytes are for: there from the start, saved for backward, computed again, a gradient, or temporary."},
      {"place", "The buffer in which the bytes lie, and where they begin in it."},
      {"lifetime", "The nodes from the first that needs the bytes to the last; between them nothing else may lie there."},
      {"reason", "Why the bytes lie where they are, and how long they stay."},
      {"decision", "Whether the value is kept or computed again, and the rule that decided it."},
      {"shares bytes", "The values that lie in the same bytes: computed in place, windows, parts, new values of a state."},
      {"readers", "The nodes that read the value, or a view of it."},
      {"runs", "How often the value is computed: 1 is once, and every further run saves keeping it until then."},
      // ---- facts about a node ----
      {"node", "The place of the node in the order in which a replay runs the nodes, from 0."},
      {"op", "The operation that computes the value."},
      {"doc", "What the operation computes."},
      {"text", "The node as the text form of the graph has it."},
      {"reads", "The values that the node reads."},
      {"makes", "The values that the node makes."},
      {"phase", "The part of the step: forward, backward, or the update of the state."},
      {"repeats", "The value that this node computes again."},
      {"gradient of", "The value of the forward pass that this node differentiates."},
      {"module", "The part of the model that the node belongs to."},
      {"region", "The checkpoint region that the program put the node in."},
      {"call site", "The place in the program that recorded the node."},
      {"workspace", "The bytes that the node needs only while it runs."},
      {"segment", "The group of nodes that the node runs with as one task."},
      {"time", "The time of one run by the cost model. A view costs nothing, nor does a part that is already in place."},
      {"us", "The microseconds of one run by the cost model. A view costs nothing, nor does a part that is already in place."},
      {"measured",
       "The microseconds of one run, measured: the median of the replays, without the reading of the clock. Views and parts "
       "that are already in place have no call to measure."},
      {"live", "The bytes that are alive while the node runs, those that are always there included."},
      // ---- steps from the capture to the plan ----
      {"text step",
       "The steps in order: the captured graph, each pass of the planner, the plan. A click shows what a step "
       "changed."},
      {"text nodes", "How many nodes a step took away (-) or added (+). In the first row: the nodes of the captured graph."},
      {"text live",
       "By how much a step changed the most bytes that are alive at once, if nothing were computed in place: "
       "less is won. In the first row: those of the captured graph."},
      // ---- columns of the other tables ----
      {"choice",
       "kept: its bytes stay until the last reader. recomputed: it runs more than once. elsewhere: it has no bytes of "
       "its own in the arena, so there is nothing to choose."},
      {"again", "The time of all runs behind the first: what it costs not to keep the value. Empty where it runs once."},
      {"rule", "Why the value is kept or computed again, in a sentence."},
      // ---- the comparison of two plans ----
      {"change",
       "What became of the value from the left plan to the right one: the first that holds of only left, only right, type, "
       "choice (kept or computed again), moved (to another address), same."},
      {"bytes_left", "The bytes of the value in the left plan."},
      {"bytes_right", "The bytes of the value in the right plan."},
      {"bytes_more", "The bytes of the value in the right plan, less those in the left one."},
      {"choice_left", "Whether the left plan keeps the value, or computes it again."},
      {"choice_right", "Whether the right plan keeps the value, or computes it again."},
      {"runs_left", "How often the left plan computes the value."},
      {"runs_right", "How often the right plan computes the value."},
      {"us_left", "What all runs of the value's node cost in the left plan."},
      {"us_right", "What all runs of the value's node cost in the right plan."},
      {"us_more", "What the value costs in the right plan, less what it costs in the left one."},
      {"alive_left", "The number of nodes during which the value holds bytes in the left plan."},
      {"alive_right", "The number of nodes during which the value holds bytes in the right plan."},
      {"address_left", "Where the bytes of the first run lie in the left plan."},
      {"address_right", "Where the bytes of the first run lie in the right plan."},
      {"made", "The node that computes the value first."},
      {"last", "The last node that reads the value."},
      {"updated", "Whether the step writes a new value into it."},
      {"step", "The place of the decision in the order in which the strategy decided."},
      {"span", "How many nodes the value no longer has to be kept across."},
      {"clones", "How many nodes the decision added; they compute the value again, and what it needs for that."},
      {"most", "The most bytes that are alive at once after this decision."},
  };
  return table;
}

std::string explain_term(std::string_view term) {
  const auto found = std::find_if(glossary().begin(), glossary().end(), [&](const Explanation& e) { return e.term == term; });
  return found == glossary().end() ? std::string() : std::string(found->sentence);
}

}  // namespace tapedeck::viewer
