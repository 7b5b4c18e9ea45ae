// A schedule with recomputation, and the bytes alive in it, kept up to date choice by choice.
//
// The graph's nodes keep their order; node t is *stage* t. A stage may run earlier nodes again before its own node, in their
// order. The own node of a stage need not run there if its results are not read before it runs in a later stage. These runs are
// the whole state. A reader in stage t reads the copy made last, in stage t or before. Each copy is kept from the stage that
// makes it to its last reader before the next copy. A node's first run is the node itself, in whatever stage it is; the other
// runs are its clones.
//
// Windows run where write_clones.h has to put them, and keep no bytes alive beside those that their readers keep.
//
// Live bytes of a stage = what is kept across it untouched + the most that its own nodes see at once (`local`: operands,
// results, workspace, less the bytes that are taken over in place). Only the arena counts: buffers of inputs, state, constants
// and outputs do not change. This equals, to the byte, the live bytes that layout.h finds in the graph that write_clones.h
// makes of the schedule.
//
// Every change is journaled and can be taken back. Cost of a change: O(log stages) for each lifetime it moves, and the nodes of
// the stages it touches.
#pragma once

#include <tapedeck/capture/planner/facts/facts.h>
#include <tapedeck/capture/planner/schedules/gap_index.h>
#include <tapedeck/capture/planner/schedules/live_tree.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tapedeck {

// A run of `node` in stage `stage`, added or removed; without steps every node runs in its own stage.
struct Step {
  NodeId stage = kNone;
  NodeId node = kNone;
  bool added = true;
  bool operator==(const Step&) const = default;
};

// A stretch of the schedule over which a value is kept without being read: from its reader (or maker) at `from` to its reader
// at `to`.
struct Gap {
  ValueId value = kNone;  // kNone: unused entry
  NodeId from = kNone, to = kNone;
};

class Schedule {
 public:
  explicit Schedule(const Facts& facts);

  // REQUIRES: node <= stage; all operands can be had at `stage` once all pending changes are made.
  void add_run(NodeId stage, NodeId node);
  void remove_run(NodeId stage, NodeId node);
  // Removes the run if its results are not read, there or later; then it removes the runs that made operands for this run
  // alone. A run in the node's own stage stays unless the node runs again later.
  void remove_if_unread(NodeId stage, NodeId node);
  // Removes the run whether or not its results are read, and the runs that made its operands as above.
  void remove_with_operands(NodeId stage, NodeId node);

  NodeId stage_count() const { return static_cast<NodeId>(runs_.size()); }
  const std::vector<NodeId>& runs(NodeId stage) const { return runs_[stage]; }  // ascending
  bool has_run(NodeId stage, NodeId node) const;
  // Calls visit(stage), in ascending order, for the stages that run anything but their own node, or do not run it.
  template <class Visit>
  void each_changed_stage(Visit&& visit) const {
    for (std::size_t word = 0; word < changed_.size(); ++word)
      for (std::uint64_t left = changed_[word]; left != 0; left &= left - 1)
        visit(static_cast<NodeId>(word * 64 + static_cast<std::size_t>(std::countr_zero(left))));
  }
  // Whether the node runs in an earlier stage, too. REQUIRES: has_run(stage, node).
  bool runs_before(NodeId stage, NodeId node) const;
  std::int64_t clone_count() const { return n_clones_; }

  // The copy of `root` made in this stage is first read in a later stage: it could as well be made there.
  bool waits(ValueId root, NodeId stage) const;

  // The bounds of the schedule without a repeated run, and without the runs that made its operands alone: its peak has at
  // least so many bytes, and at most so many microseconds are saved. Zero bytes mean that nothing is known.
  // REQUIRES: has_run() and runs_before(); live bytes are up to date.
  struct Without {
    std::int64_t bytes = 0;
    double saved_us = 0;
  };
  Without least_without(NodeId stage, NodeId node);

  // Brings live bytes up to date after changes; all of the queries below need it.
  void refresh();
  LiveTree::Peak peak() const { return live_.peak(); }
  std::int64_t most_live(NodeId first, NodeId last) const { return live_.most(first, last); }
  std::int64_t live(NodeId stage) const { return live_.at(stage); }
  void read_live(std::vector<std::int64_t>* by_stage) const { live_.read(by_stage); }

  // Where a value stands around a stage.
  struct Presence {
    bool here = false;        // read or made in the stage
    bool kept = false;        // kept across it
    NodeId previous = kNone;  // the last stage before that reads or makes it
    NodeId next = kNone;      // the first stage after that does
    bool next_makes = false;  // ... and there it is made again
  };
  Presence presence(ValueId root, NodeId stage) const;
  const std::vector<Gap>& gaps() const { return gaps_; }
  // From now on, each_gap_across() can be asked, and every change of a gap takes a little longer.
  void index_gaps();
  // Calls visit(gap) for all gaps with gap.from <= stage < gap.to. REQUIRES: index_gaps() was called.
  template <class Visit>
  void each_gap_across(NodeId stage, Visit&& visit) const {
    index_->each_across(stage, [&](std::int32_t gap) { visit(gaps_[static_cast<std::size_t>(gap)]); });
  }

  // The journal: everything done since the beginning, in order.
  const std::vector<Step>& journal() const { return journal_; }
  void undo_to(std::size_t journal_size);

  // Lifetimes moved and nodes measured so far: a clock that is the same on every machine.
  std::int64_t work() const { return work_; }

 private:
  struct Touch {  // a stage in which a value is read or made
    NodeId stage = kNone;
    std::int32_t readers = 0;
    bool made = false;
    std::int32_t gap = kNone;  // the entry of gaps_ that ends here; kNone if none is kept
  };

  // Why refresh() looks at a stage: a gap that begins or ends there was moved, or the bytes that its nodes see have changed.
  enum class Stale : char { no, gap_moved, bytes_changed };

  void apply(const Step& step);
  void note_changed(NodeId stage);
  void change_touch(ValueId root, NodeId stage, std::int32_t readers, int made);
  std::size_t find_touch(ValueId root, NodeId stage) const;
  bool open_gap(ValueId root, std::size_t touch);
  bool close_gap(ValueId root, std::size_t touch);
  void mark(NodeId stage, Stale why);
  bool kept_after(ValueId root, NodeId stage) const;
  bool is_unread(NodeId stage, NodeId node) const;
  NodeId made_in(ValueId root, NodeId stage) const;
  bool is_made_after(ValueId root, NodeId stage) const;
  std::span<const ValueId> reads(NodeId node) const;

  void add_local(NodeId node, std::int32_t position, bool clone);
  void note_local(ValueId root, std::int32_t position, bool made);
  void take_over_local(NodeId node, std::int32_t position);
  std::int64_t measure_local(NodeId stage);
  std::int64_t measure_runs(NodeId stage);

  const Facts& facts_;
  std::vector<char> passes_on_;              // by node: passing_windows()
  std::vector<char> may_leave_;              // by node: it may be left to a later stage
  std::vector<std::vector<NodeId>> runs_;    // by stage, ascending
  std::vector<std::uint64_t> changed_;       // by stage, a bit each: each_changed_stage() visits it
  std::vector<std::vector<Touch>> touches_;  // by value (roots in the arena only), ascending
  std::vector<Gap> gaps_;
  std::vector<std::int32_t> free_gaps_;
  std::optional<GapIndex> index_;  // nothing unless it was asked for
  LiveTree live_;
  std::vector<std::int64_t> local_;  // by stage: the part of live_ that its own nodes see
  std::vector<std::int64_t> alone_;  // by node: what it sees if nothing else runs in its stage, without takeovers
  std::vector<NodeId> stale_;
  std::vector<Stale> is_stale_;  // by stage
  std::vector<Step> journal_;
  std::vector<NodeId> going_;  // scratch of least_without()
  std::int64_t n_clones_ = 0;
  std::int64_t work_ = 0;

  // Scratch of measure_local.
  struct Span {
    std::int32_t first = 0, last = 0;
    bool exits = false;  // kept beyond the stage
  };
  std::vector<Span> spans_;          // by value
  std::vector<std::int32_t> stamp_;  // by value: the measurement that wrote spans_[v]
  std::int32_t now_ = 0;
  std::vector<ValueId> in_stage_;
  std::vector<std::int64_t> delta_;
};

// Few touches are counted rather than halved, so that no branch is taken wrongly.
inline std::size_t Schedule::find_touch(ValueId root, NodeId stage) const {
  constexpr std::size_t kFewTouches = 8;
  const auto& touches = touches_[root];
  if (touches.size() <= kFewTouches) {
    std::size_t before = 0;
    for (const Touch& touch : touches) before += touch.stage < stage;
    return before;
  }
  const auto at = std::lower_bound(touches.begin(), touches.end(), stage, [](const Touch& t, NodeId s) { return t.stage < s; });
  return static_cast<std::size_t>(at - touches.begin());
}

inline Schedule::Presence Schedule::presence(ValueId root, NodeId stage) const {
  const auto& touches = touches_[root];
  std::size_t i = find_touch(root, stage);
  Presence p;
  if (i > 0) p.previous = touches[i - 1].stage;
  if (i < touches.size() && touches[i].stage == stage) {
    p.here = true;
    ++i;
  }
  if (i < touches.size()) {
    p.next = touches[i].stage;
    p.next_makes = touches[i].made;
    p.kept = !p.here && touches[i].gap != kNone;
  }
  return p;
}

// By node: a window that is read and that no order edge waits for. It may run anywhere between its operand and its readers.
std::vector<char> passing_windows(const Facts& facts);

// Schedule(facts).peak().bytes in one walk: most questions are about a schedule without a clone.
std::int64_t peak_without_clones(const Facts& facts);

}  // namespace tapedeck
