// Binomial checkpointing of a chain (Griewank and Walther 2000): with s slots for states of the chain, the fewest runs of
// forward nodes with which backward gets all values in reverse order.
//
//     a1 a2 a3 a4 a5 a6 a7 with 2 slots: forward keeps %a2 and %a5, and %a7 is there. Again run
//     a6 before the reader of %a6;   a3 a4 before that of %a4 (%a3 is kept then);   a1 before that of %a1: four runs
//
// The chain is the forward part, cut into blocks wherever at most one value crosses (chain_blocks.h). Blocks count as equal, so
// the schedule is the best one for equal blocks, and its live bytes are exact for the blocks as they are. A graph that nothing
// cuts has one block, of which nothing is offered.
//
// Points: fewer and fewer slots, an eighth less each time. Each number of slots is one choice, which takes the place of the
// choice before, and is made if its peak is lower.
#include <tapedeck/capture/planner/rematerialize/chain_blocks.h>
#include <tapedeck/capture/planner/rematerialize/forward_part.h>

#include <fmt/format.h>

#include <algorithm>

namespace tapedeck {

namespace {

constexpr std::int64_t kMostBinomialWork = 5'000'000;  // RepeatedRuns::work(): seconds
constexpr std::size_t kMostRepeats = 10;               // runs, for each node of the graph
constexpr std::size_t kLeastMostRuns = 5000;           // a small graph may repeat more

class BinomialChooser {
 public:
  BinomialChooser(const Facts& facts, const Watch& watch)
      : facts_(facts), watch_(watch), runs_(facts), chain_(chain_blocks(facts)) {}

  Choices choose() {
    choices_.points.push_back(runs_.point_after(0));
    const auto blocks = static_cast<std::int64_t>(chain_.blocks.size());
    for (std::int64_t slots = blocks - 2; slots >= 0 && runs_.work() < kMostBinomialWork;
         slots -= std::max<std::int64_t>(1, slots / 8)) {
      watch_.check();
      watch_.report(1 - static_cast<double>(slots) / static_cast<double>(blocks));
      if (!try_slots(slots)) break;
    }
    choices_.journal = runs_.journal();
    return std::move(choices_);
  }

 private:
  // Returns false if this takes too many runs: fewer slots take more.
  bool try_slots(std::int64_t slots) {
    const std::size_t most = std::max(kLeastMostRuns, kMostRepeats * facts_.graph->nodes.size());
    const auto wanted = runs_with_slots(facts_, chain_, slots, most);
    if (!wanted) return false;
    const std::size_t before = runs_.journal().size();
    runs_.switch_to(*wanted);
    if (runs_.live_peak() < choices_.points.back().live_peak) {
      note_decision(slots, before);
      choices_.points.push_back(runs_.point_after(choices_.decisions.size()));
    } else {
      runs_.take_back(before);
    }
    return true;
  }

  void note_decision(std::int64_t slots, std::size_t before) {
    Decision d = runs_.decision_since(before);
    std::set<NodeId> nodes;
    for (const RepeatedRun& run : runs_.runs()) {
      nodes.insert(run.node);
      d.span = std::max(d.span, run.stage - run.node - 1);
    }
    for (NodeId n : nodes) d.bytes += bytes_made(facts_, n);
    d.value = named_result(facts_, *nodes.begin());
    d.reason =
        fmt::format("{} slots for a chain of {} blocks: {} nodes run again, {} times together, the fewest for equal blocks",
                    slots, chain_.blocks.size(), nodes.size(), runs_.runs().size());
    choices_.decisions.push_back(std::move(d));
  }

  const Facts& facts_;
  const Watch& watch_;
  RepeatedRuns runs_;
  ChainBlocks chain_;
  Choices choices_;
};

const Strategy binomial_strategy = register_strategy({
    .name = "binomial",
    .doc = "reverses a chain of blocks with few slots and the fewest recomputations (revolve), from many slots to few",
    .choose = [](const Facts& facts, const Watch& watch) { return BinomialChooser(facts, watch).choose(); },
    .in_auto = InAuto::finished,
});

}  // namespace

}  // namespace tapedeck
