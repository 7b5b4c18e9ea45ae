#include <tapedeck/capture/planner/rematerialize/chain_blocks.h>

#include <tapedeck/capture/planner/rematerialize/binomial_schedule.h>
#include <tapedeck/capture/planner/rematerialize/forward_line.h>
#include <tapedeck/capture/planner/rematerialize/forward_part.h>

#include <algorithm>

namespace tapedeck {

namespace {

// ---- blocks ----

class BlockFinder {
 public:
  explicit BlockFinder(const Facts& facts)
      : facts_(facts),
        line_(forward_line(facts)),
        later_readers_(first_later_readers(facts)),
        marks_(facts.graph->values.size(), 0) {
    chain_.block_of.assign(facts.graph->values.size(), kNone);
  }

  ChainBlocks find() {
    const double least_cost = mean_cost() / 2;
    std::size_t first = 0;
    double cost = 0;
    for (std::size_t i = 0; i < line_.nodes.size(); ++i) {
      note_crossing(i);
      cost += facts_.cost[line_.nodes[i]];
      const bool last = i + 1 == line_.nodes.size();
      const std::int64_t before = first == 0 ? 0 : line_.bytes_until[first - 1];
      if (!last && (line_.crossing_values[i] > 1 || line_.bytes_until[i] == before || cost < least_cost)) continue;
      add_block(first, i);
      first = i + 1;
      cost = 0;
    }
    return std::move(chain_);
  }

 private:
  double mean_cost() const {
    double us = 0;
    std::int64_t nodes = 0;
    for (NodeId n : line_.nodes) {
      us += facts_.cost[n];
      nodes += bytes_made(facts_, n) > 0;
    }
    return nodes == 0 ? 0 : us / static_cast<double>(nodes);
  }

  // Follows the values that cross place i and count.
  void note_crossing(std::size_t i) {
    for (ValueId v : facts_.makes(line_.nodes[i]))
      if (facts_.in_arena(v) && facts_.bytes[v] >= line_.least_counted && line_.last_reader[v] > i) crossing_.insert(v);
    for (ValueId root : facts_.reads(line_.nodes[i]))
      if (line_.last_reader[root] == i) crossing_.erase(root);
  }

  void add_block(std::size_t first, std::size_t last) {
    ChainBlock block;
    if (crossing_.size() == 1) block.neck = *crossing_.begin();
    const auto number = static_cast<std::int32_t>(chain_.blocks.size());
    for (std::size_t i = first; i <= last; ++i) {
      for (ValueId v : facts_.makes(line_.nodes[i])) {
        if (!facts_.in_arena(v)) continue;
        chain_.block_of[v] = number;
        block.inside_is_read = block.inside_is_read || (v != block.neck && later_readers_[v] != Facts::kNever);
      }
    }
    block.to_neck = makers_of([&](ValueId v) { return v == block.neck; }, first, last);
    block.to_later = makers_of([&](ValueId v) { return later_readers_[v] != Facts::kNever; }, first, last);
    chain_.blocks.push_back(std::move(block));
  }

  // The nodes of the stretch that must run to have these values, from what is made before the stretch.
  template <class Wanted>
  std::vector<NodeId> makers_of(Wanted wanted, std::size_t first, std::size_t last) {
    std::vector<NodeId> makers;
    ++mark_;
    for (std::size_t i = last + 1; i-- > first;) {
      const NodeId n = line_.nodes[i];
      const auto makes = facts_.makes(n);
      const bool is_wanted = std::any_of(makes.begin(), makes.end(), [&](ValueId v) {
        return facts_.in_arena(v) && facts_.bytes[v] > 0 && (wanted(v) || marks_[v] == mark_);
      });
      if (!is_wanted || !may_run_again(facts_, n)) continue;
      makers.push_back(n);
      for (ValueId root : facts_.reads(n)) marks_[root] = mark_;
    }
    std::reverse(makers.begin(), makers.end());
    return makers;
  }

  const Facts& facts_;
  ForwardLine line_;
  std::vector<NodeId> later_readers_;  // by root
  std::vector<std::int32_t> marks_;    // by root: the last search that wanted it
  std::int32_t mark_ = 0;
  std::set<ValueId> crossing_;  // the place at hand
  ChainBlocks chain_;
};

// ---- the way back ----

class WayBack {
 public:
  WayBack(const Facts& facts, const ChainBlocks& chain, std::int64_t slots, std::size_t most)
      : facts_(facts), chain_(chain), slots_(slots), most_(most), served_(last_read_block()) {
    fill_slots(served_);
  }

  std::optional<std::set<RepeatedRun>> find() {
    for (NodeId stage = 0; stage < facts_.graph->node_count(); ++stage) {
      if (is_forward(facts_, stage)) continue;
      for (ValueId root : facts_.reads(stage))
        if (chain_.block_of[root] != kNone && !is_there(root)) serve(chain_.block_of[root], stage);
      if (runs_.size() > most_) return {};
    }
    return std::move(runs_);
  }

 private:
  // What forward leaves behind: the last block that a later phase reads.
  std::int32_t last_read_block() const {
    std::int32_t last = -1;
    for (NodeId n = 0; n < facts_.graph->node_count(); ++n)
      if (!is_forward(facts_, n))
        for (ValueId root : facts_.reads(n)) last = std::max(last, chain_.block_of[root]);
    return last;
  }

  bool is_there(ValueId root) const {
    const std::int32_t b = chain_.block_of[root];
    if (b >= served_) return true;
    if (chain_.blocks[b].neck != root) return false;
    const bool was_passed = b == served_ - 1 && chain_.blocks[b].inside_is_read;  // on the way to the block at hand
    return was_passed || std::find(kept_.begin(), kept_.end(), b) != kept_.end();
  }

  // Fills free slots on the way to block `to` from the last kept neck before it.
  void fill_slots(std::int32_t to) {
    for (;;) {
      const std::int32_t from = kept_.empty() ? -1 : kept_.back();
      const std::int64_t steps = to - from + 1, slots = slots_ - static_cast<std::int64_t>(kept_.size()) + 1;
      if (steps < 3 || slots < 2) return;
      const std::int64_t stop = first_stop(steps, slots);
      if (from + stop >= to) return;
      kept_.push_back(from + static_cast<std::int32_t>(stop));
    }
  }

  // Makes block b again in this stage, from the last kept neck before it.
  void serve(std::int32_t b, NodeId stage) {
    while (!kept_.empty() && kept_.back() >= b) kept_.pop_back();
    const std::int32_t from = kept_.empty() ? -1 : kept_.back();
    for (std::int32_t passed = from + 1; passed < b; ++passed) run(chain_.blocks[passed].to_neck, stage);
    run(chain_.blocks[b].to_later, stage);
    fill_slots(b);
    served_ = b;
  }

  void run(const std::vector<NodeId>& nodes, NodeId stage) {
    for (NodeId n : nodes)
      if (n < stage && can_be_had_at(facts_, n, stage) && !keeps_given_up(n, stage)) runs_.insert({stage, n});
  }

  // The node would read a value that a wish gives up, and that is not made again in this stage.
  bool keeps_given_up(NodeId n, NodeId stage) const {
    const auto reads = facts_.reads(n);
    return std::any_of(reads.begin(), reads.end(), [&](ValueId root) {
      return is_given_up(facts_, root) && !runs_.contains({stage, facts_.graph->values[root].node});
    });
  }

  const Facts& facts_;
  const ChainBlocks& chain_;
  const std::int64_t slots_;
  const std::size_t most_;
  std::vector<std::int32_t> kept_;  // blocks whose necks are kept, ascending
  std::int32_t served_;             // the block that was made last; it and the blocks behind it are there
  std::set<RepeatedRun> runs_;
};

}  // namespace

ChainBlocks chain_blocks(const Facts& facts) { return BlockFinder(facts).find(); }

std::optional<std::set<RepeatedRun>> runs_with_slots(const Facts& facts, const ChainBlocks& chain, std::int64_t slots,
                                                     std::size_t most) {
  return WayBack(facts, chain, slots, most).find();
}

}  // namespace tapedeck
