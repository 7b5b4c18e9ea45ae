#include <tapedeck/engine/eviction/eviction_log.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace tapedeck {

using Block = EvictionLog::Block;
using Call = EvictionLog::Call;

namespace {

// The numbers of the score and of the rules beside it.
constexpr double kSizePower = 0.8, kIdleShare = 0.3;
constexpr double kHeldOperand = 0.55, kLetGoOperand = 2.5, kReader = 0.15, kOtherResults = 0.5;
constexpr double kOfNoUse = 1e-3;
constexpr double kSoonShare = 0.3, kSoonReadAgain = 1.5;
constexpr std::size_t kMostVisited = 16;
// A look fetches the memory that the score of a candidate so many places ahead will need.
constexpr std::size_t kEntryAhead = 16, kCallAhead = 8;

}  // namespace

// ---- entries ----

Block EvictionLog::new_block(std::int64_t bytes) {
  Block b = static_cast<Block>(blocks_.size());
  if (free_blocks_.empty()) {
    blocks_.emplace_back();
    free_blocks_.reserve(blocks_.capacity());  // so that giving a number back takes no memory
    for (std::vector<Candidate>& list : candidates_) list.reserve(blocks_.capacity());
    without_cost_.reserve(blocks_.capacity());
  } else {
    b = free_blocks_.back();
    free_blocks_.pop_back();
  }
  BlockEntry& entry = blocks_[b];
  entry.bytes = bytes;
  entry.size = std::pow(static_cast<double>(bytes), kSizePower);
  entry.used = now_;
  entry.cost = -1;
  entry.held = entry.resident = entry.alive = true;
  counts_.resident_bytes += bytes;
  ++live_blocks_;
  return b;
}

Call EvictionLog::new_call() {
  if (free_calls_.empty()) {
    calls_.emplace_back();
    free_calls_.reserve(calls_.capacity());
    return static_cast<Call>(calls_.size()) - 1;
  }
  const Call c = free_calls_.back();
  free_calls_.pop_back();
  return c;
}

Block EvictionLog::add_block(std::int64_t bytes) { return new_block(bytes); }

Call EvictionLog::add_call(std::span<const Block> operands, std::span<const std::int64_t> result_bytes, double cost,
                           std::span<Block> results) {
  const Call c = new_call();
  for (std::size_t i = 0; i < result_bytes.size(); ++i) results[i] = new_block(result_bytes[i]);
  CallEntry& call = calls_[c];
  call.alive = true;
  call.cost = cost;
  call.operands.assign(operands.begin(), operands.end());
  call.results.assign(results.begin(), results.end());
  call.live_results = static_cast<std::int32_t>(results.size());
  call.places.resize(operands.size());
  for (std::size_t i = 0; i < operands.size(); ++i) {
    BlockEntry& operand = blocks_[operands[i]];
    call.places[i] = static_cast<std::int32_t>(operand.readers.size());
    operand.readers.push_back({c, static_cast<std::int32_t>(i), results.size() == 1 ? results[0] : Block{kNone}});
    set_used_now(operand);
  }
  for (Block b : results) {
    blocks_[b].maker = c;
    update_candidate(b);
  }
  now_ += cost;
  counts_.cost += cost;
  ++counts_.calls;
  return c;
}

// ---- residence ----

bool EvictionLog::can_be_evicted(Block b) const {
  const BlockEntry& entry = blocks_[b];
  return entry.resident && entry.maker != kNone && entry.pins == 0 && entry.locks == 0 && entry.bytes > 0;
}

void EvictionLog::update_candidate(Block b) noexcept {
  BlockEntry& entry = blocks_[b];
  const bool is = entry.alive && entry.resident && entry.maker != kNone && entry.pins == 0 && entry.bytes > 0;
  if (is == (entry.candidate != kNone)) return;
  std::vector<Candidate>& list = candidates_[entry.bytes < kSmallBlock ? small : large];
  if (is) {
    entry.candidate = static_cast<std::int32_t>(list.size());
    const CallEntry& call = calls_[entry.maker];
    const double least = call.results.size() == 1 ? call.cost : 0;  // share_of_call()
    list.push_back({entry.cost, entry.used, entry.size, call.cost, least, b, entry.of_use, entry.held});
    return;
  }
  const Candidate last = list.back();
  list[entry.candidate] = last;
  blocks_[last.block].candidate = std::exchange(entry.candidate, kNone);
  if (last.block == b) blocks_[b].candidate = kNone;
  list.pop_back();
}

// The copy of the block's numbers in the list of candidates. Null if the block is no candidate.
EvictionLog::Candidate* EvictionLog::in_list(const BlockEntry& entry) noexcept {
  if (entry.candidate == kNone) return nullptr;
  return &candidates_[entry.bytes < kSmallBlock ? small : large][entry.candidate];
}

void EvictionLog::set_used_now(BlockEntry& entry) noexcept {
  entry.used = now_;
  if (Candidate* copy = in_list(entry)) copy->used = now_;
}

void EvictionLog::set_cost(BlockEntry& entry, double cost) noexcept {
  entry.cost = cost;
  if (Candidate* copy = in_list(entry)) {
    copy->cost = cost;
    copy->of_use = entry.of_use;
    copy->held = entry.held;
  }
}

void EvictionLog::note_resident(Block b, bool resident) noexcept {
  BlockEntry& entry = blocks_[b];
  entry.resident = resident;
  counts_.resident_bytes += resident ? entry.bytes : -entry.bytes;
  update_candidate(b);
}

void EvictionLog::set_resident(Block b, bool resident) noexcept {
  note_resident(b, resident);
  forget_costs_around(b);
}

void EvictionLog::free_bytes(Block b) noexcept {
  set_resident(b, false);
  owner_.free(b);
}

// The share of the cost of its call that a block is charged. The share is 0 if the call must run again for another result in
// any case. The largest result is charged less when the other results have many bytes: once it is evicted, the others are
// charged 0.
double EvictionLog::share_of_call(Block b, const CallEntry& call) const {
  if (call.results.size() == 1) return 1;
  const auto own = static_cast<double>(blocks_[b].bytes);
  double all = 0;
  bool is_largest = true;
  for (Block other : call.results) {
    if (other == kNone) continue;
    const BlockEntry& entry = blocks_[other];
    if (other != b && !entry.resident && entry.held) return 0;
    all += static_cast<double>(entry.bytes);
    is_largest = is_largest && entry.bytes <= blocks_[b].bytes;
  }
  return is_largest && all > 0 ? 1 - kOtherResults * (1 - own / all) : 1;
}

// The number above the line of the score. Each of its two walks visits at most kMostVisited blocks.
double EvictionLog::cost_again(Block b) {
  ++mark_;
  double cost = 0;
  walk_.assign(1, b);
  for (std::size_t k = 0; k < walk_.size() && k < kMostVisited; ++k) {
    const BlockEntry& entry = blocks_[walk_[k]];
    CallEntry& call = calls_[entry.maker];
    if (std::exchange(call.mark, mark_) == mark_) continue;
    cost += call.cost * (k == 0 ? share_of_call(b, call) : entry.held ? kHeldOperand : kLetGoOperand);
    for (Block operand : call.operands)
      if (!blocks_[operand].resident) walk_.push_back(operand);
  }
  return cost + kReader * cost_of_readers(b);
}

// The cost of the calls that read the block, or evicted blocks which are computed from it, and whose results are evicted.
double EvictionLog::cost_of_readers(Block b) {
  ++mark_;
  double cost = 0;
  walk_.assign(1, b);
  for (std::size_t k = 0; k < walk_.size() && k < kMostVisited; ++k)
    for (const Reader& reader : blocks_[walk_[k]].readers) {
      if (reader.result != kNone && blocks_[reader.result].resident) continue;
      CallEntry& call = calls_[reader.call];
      if (call.mark == mark_) continue;
      const std::size_t before = walk_.size();
      for (Block result : call.results)
        if (result != kNone && !blocks_[result].resident) walk_.push_back(result);
      if (walk_.size() == before) continue;
      call.mark = mark_;
      cost += call.cost;
    }
  return cost;
}

// Called when a block was evicted or computed again, or when the program lets an evicted block go. The costs change of the
// other results of its call, of all blocks that are computed from it, and of all that it is computed from, directly or through
// evicted blocks. The last may be of no use any more, too.
void EvictionLog::forget_costs_around(Block first) noexcept {
  const auto forget = [this](Block at) {
    BlockEntry& entry = blocks_[at];
    if (entry.cost >= 0) set_cost(entry, -1);
    if (!entry.resident && std::exchange(entry.mark, mark_) != mark_) walk_.push_back(at);
  };
  ++mark_;
  walk_.assign(1, first);
  for (std::size_t k = 0; k < walk_.size() && k < kMostVisited; ++k)
    for (const Reader& reader : blocks_[walk_[k]].readers) {
      if (reader.result != kNone) {
        forget(reader.result);
        continue;
      }
      for (Block result : calls_[reader.call].results)
        if (result != kNone) forget(result);
    }
  forget_costs_of_results(blocks_[first].maker);
  ++mark_;
  walk_.assign(1, first);
  for (std::size_t k = 0; k < walk_.size() && k < kMostVisited; ++k)
    if (blocks_[walk_[k]].maker != kNone)
      for (Block operand : calls_[blocks_[walk_[k]].maker].operands) forget(operand);
}

void EvictionLog::forget_costs_of_results(Call c) noexcept {
  if (c == kNone) return;
  for (Block result : calls_[c].results)
    if (result != kNone) set_cost(blocks_[result], -1);
}

double EvictionLog::known_cost(Block b) {
  BlockEntry& entry = blocks_[b];
  if (entry.cost < 0) {
    const double cost = cost_again(b);
    entry.of_use = is_of_use(b);
    set_cost(entry, cost);
  }
  return entry.cost;
}

// Whether the program holds the block, or an evicted block that it holds is computed from it, directly or through evicted
// blocks of which at most kMostVisited are looked at.
bool EvictionLog::is_of_use(Block b) {
  if (blocks_[b].held) return true;
  ++mark_;
  walk_.assign(1, b);
  for (std::size_t k = 0; k < walk_.size() && k < kMostVisited; ++k)
    for (const Reader& reader : blocks_[walk_[k]].readers)
      for (Block result : calls_[reader.call].results) {
        if (result == kNone || blocks_[result].resident || std::exchange(blocks_[result].mark, mark_) == mark_) continue;
        if (blocks_[result].held) return true;
        walk_.push_back(result);
      }
  return false;
}

// REQUIRES: the cost of the candidate is known.
double EvictionLog::score(const Candidate& c) const {
  const double idle = now_ - c.used;
  double cost = c.cost;
  if (idle < reuse_) cost += kSoonReadAgain * c.call_cost;
  if (!c.of_use) cost *= kOfNoUse;
  return cost / (c.size * (idle + kIdleShare * now_));
}

// Called before an evicted block is computed again because the program reads it.
void EvictionLog::note_early_read(const BlockEntry& b) noexcept {
  const double idle = now_ - b.used;
  if (idle < kSoonShare * now_) reuse_ = std::max(reuse_, idle);
}

// Returns the block with the smallest score. The last look at all blocks has found several of them (ready_). A block that was
// used since, or that costs more now, is passed over. When ready_ is empty, all blocks are looked at again.
Block EvictionLog::cheapest() noexcept {
  for (int looks = 0; looks < 2; ++looks) {
    while (!ready_.empty()) {
      const Ready at = ready_.back();
      ready_.pop_back();
      const BlockEntry& entry = blocks_[at.block];
      const bool may_go = entry.candidate != kNone && entry.locks == 0 && entry.awaited <= at.awaited && entry.used == at.used;
      if (may_go && known_cost(at.block) <= at.cost) return at.block;
    }
    look_at(candidates_[large], false);
    if (ready_.empty()) look_at(candidates_[small], false);
    if (ready_.empty()) look_at(candidates_[large], true);
  }
  return kNone;
}

// Fetches memory that the costs of the candidates behind number `at` of without_cost_ need. The kernels that ran since the last
// look have taken the caches.
void EvictionLog::fetch_ahead(std::size_t at) const noexcept {
  const std::size_t left = without_cost_.size() - at;
  if (left > kEntryAhead) __builtin_prefetch(&blocks_[without_cost_[at + kEntryAhead]->block]);
  if (left <= kCallAhead) return;
  const BlockEntry& next = blocks_[without_cost_[at + kCallAhead]->block];
  __builtin_prefetch(&calls_[next.maker]);
  __builtin_prefetch(next.readers.data());
}

// Whether the candidate may be one of the `most` blocks with the smallest scores, as far as the list alone shows it. The cost
// of a block that the program holds is not scaled by kOfNoUse.
bool EvictionLog::may_be_ready(const Candidate& c, std::size_t most) const {
  if (ready_.size() < most) return true;
  if (c.cost >= 0) return score(c) <= ready_.front().score;
  Candidate least = c;
  least.cost = c.least_cost;
  least.of_use = c.held;
  return score(least) <= ready_.front().score;
}

bool EvictionLog::goes_before(const Ready& a, const Ready& b) {
  return a.score != b.score ? a.score < b.score : a.block < b.block;
}

// Puts the candidate into ready_, a heap with the largest score first, if it has one of the smallest scores so far.
void EvictionLog::make_ready(const Candidate& c, bool awaited, std::size_t most) {
  const BlockEntry& entry = blocks_[c.block];
  if (entry.locks > 0 || (entry.awaited > 0 && !awaited)) return;
  known_cost(c.block);  // writes the cost into the list, too
  const Ready at{score(c), c.block, entry.used, entry.cost, entry.awaited};
  if (ready_.size() == most) {
    if (!goes_before(at, ready_.front())) return;
    std::pop_heap(ready_.begin(), ready_.end(), goes_before);
    ready_.pop_back();
  }
  ready_.push_back(at);
  std::push_heap(ready_.begin(), ready_.end(), goes_before);
}

// Puts the blocks with the smallest scores into ready_, the smallest score last. Of many candidates it takes several blocks, so
// that all candidates are seldom looked at. Candidates whose costs are known come first: the others then need a cost only if
// the least that it can be is small enough.
void EvictionLog::look_at(const std::vector<Candidate>& candidates, bool awaited) noexcept {
  const std::size_t most = std::clamp<std::size_t>(candidates.size() / 64, 1, 64);
  without_cost_.clear();
  for (const Candidate& c : candidates) {
    if (c.cost < 0)
      without_cost_.push_back(&c);
    else if (may_be_ready(c, most))
      make_ready(c, awaited, most);
  }
  for (std::size_t i = 0; i < without_cost_.size(); ++i) {
    fetch_ahead(i);
    if (may_be_ready(*without_cost_[i], most)) make_ready(*without_cost_[i], awaited, most);
  }
  std::sort(ready_.begin(), ready_.end(), [](const Ready& a, const Ready& b) { return goes_before(b, a); });
}

std::int64_t EvictionLog::evict_bytes(std::int64_t wanted) noexcept {
  chosen_.clear();
  std::int64_t bytes = counts_.resident_bytes;
  if (keeps_many_bytes()) shorten();
  bytes -= counts_.resident_bytes;
  for (Block b = kNone; bytes < wanted && (b = cheapest()) != kNone; bytes += blocks_[b].bytes) {
    set_resident(b, false);
    chosen_.push_back(b);
  }
  // The last block may have more bytes than are still missing. Then earlier blocks stay, the dearest first.
  std::sort(chosen_.begin(), chosen_.end(), [this](Block a, Block b) {
    const double x = calls_[blocks_[a].maker].cost, y = calls_[blocks_[b].maker].cost;
    return x != y ? x > y : a < b;
  });
  for (Block b : chosen_) {
    if (bytes - blocks_[b].bytes >= wanted) {
      bytes -= blocks_[b].bytes;
      set_resident(b, true);
      continue;
    }
    counts_.evictions += blocks_[b].held;
    owner_.free(b);
  }
  return bytes;
}

bool EvictionLog::evict(Block b) noexcept {
  if (!can_be_evicted(b)) return false;
  counts_.evictions += blocks_[b].held;
  free_bytes(b);
  return true;
}

void EvictionLog::pin(Block b) noexcept {
  ++blocks_[b].pins;
  update_candidate(b);
}

void EvictionLog::unpin(Block b) noexcept {
  if (blocks_[b].pins > 0) --blocks_[b].pins;
  update_candidate(b);
}

void EvictionLog::read(Block b) {
  if (!blocks_[b].resident) {
    note_early_read(blocks_[b]);
    run_again(blocks_[b].maker);
  }
  set_used_now(blocks_[b]);
}

// A call that waits for its operands. The operands in `order` before `next` are resident and locked.
struct EvictionLog::Frame {
  Call call;
  std::vector<Block> order;
  std::size_t next = 0;
};

// Evicted operands come first, the dearest before the others, so that few blocks are locked while an operand is computed. The
// resident operands are locked last. Until then they are awaited: they are evicted only if no other block can be, and are then
// computed again.
EvictionLog::Frame EvictionLog::wait_for_operands(Call c) {
  Frame frame{c, calls_[c].operands};
  for (Block b : frame.order) ++blocks_[b].awaited;
  if (frame.order.size() < 2) return frame;
  std::vector<std::pair<double, Block>> costs;
  for (Block b : frame.order) costs.push_back({blocks_[b].resident ? 0 : known_cost(b), b});
  std::stable_sort(costs.begin(), costs.end(), [](const auto& x, const auto& y) { return x.first > y.first; });
  for (std::size_t i = 0; i < costs.size(); ++i) frame.order[i] = costs[i].second;
  return frame;
}

void EvictionLog::run_again(Call first) {
  std::vector<Frame> waiting;
  waiting.push_back(wait_for_operands(first));
  std::vector<Block> wanted;
  const auto unlock_operands = [this](const Frame& frame) {
    for (Block b : frame.order) --blocks_[b].awaited;
    for (std::size_t i = 0; i < frame.next; ++i) unlock(frame.order[i]);
  };
  try {
    while (!waiting.empty()) {
      Frame& top = waiting.back();
      const CallEntry& call = calls_[top.call];
      while (top.next < top.order.size() && blocks_[top.order[top.next]].resident) lock(top.order[top.next++]);
      if (top.next < top.order.size()) {
        const Call maker = blocks_[top.order[top.next]].maker;
        waiting.push_back(wait_for_operands(maker));
        continue;
      }
      wanted.clear();
      for (Block result : call.results)
        if (result != kNone && !blocks_[result].resident) wanted.push_back(result);
      owner_.run(top.call, wanted);
      now_ += call.cost;
      ++counts_.recomputed;
      counts_.recomputed_cost += call.cost;
      for (Block result : wanted) {
        set_resident(result, true);
        set_used_now(blocks_[result]);
      }
      for (Block operand : call.operands) set_used_now(blocks_[operand]);
      unlock_operands(top);
      waiting.pop_back();
    }
  } catch (...) {
    for (const Frame& frame : waiting) unlock_operands(frame);
    throw;
  }
}

// ---- the end of blocks and calls ----

void EvictionLog::let_go(Block b) noexcept {
  BlockEntry& entry = blocks_[b];
  entry.held = false;
  set_cost(entry, -1);  // it may be of no use now
  if (!entry.resident) forget_costs_around(b);
  entry.pins = 0;  // no tensor is left by which the program could read it
  update_candidate(b);
  if (entry.readers.empty()) return drop_unneeded(b);
  if (entry.maker == kNone)
    settle({b});
  else if (can_be_evicted(b))
    free_bytes(b);
  ++let_go_;
  const auto entries = static_cast<std::int64_t>(blocks_.size());  // shorten() takes time linear in them
  if (let_go_ > 1000 + 4 * entries || (let_go_ > 64 + entries / 2 && keeps_many_bytes())) shorten();
}

// Takes the call out of the reader lists of its operands. Operands that nothing needs any more are added to `unread`.
void EvictionLog::release_operands(Call c, std::vector<Block>* unread) noexcept {
  CallEntry& call = calls_[c];
  for (std::size_t i = 0; i < call.operands.size(); ++i) {
    BlockEntry& operand = blocks_[call.operands[i]];
    const Reader moved = operand.readers.back();
    operand.readers[call.places[i]] = moved;
    calls_[moved.call].places[moved.operand] = call.places[i];
    operand.readers.pop_back();
    if (!needed(operand)) unread->push_back(call.operands[i]);
  }
  call.operands.clear();
  call.places.clear();
}

void EvictionLog::drop_call(Call c, std::vector<Block>* unread) noexcept {
  release_operands(c, unread);
  calls_[c].results.clear();
  calls_[c].alive = false;
  owner_.forget_call(c);
  free_calls_.push_back(c);
}

// The number of the block may be used again.
void EvictionLog::retire(Block b) noexcept {
  BlockEntry& entry = blocks_[b];
  entry.alive = entry.held = entry.resident = false;
  entry.locks = entry.pins = 0;
  owner_.forget(b);
  free_blocks_.push_back(b);
  --live_blocks_;
}

void EvictionLog::drop_unneeded(Block first) noexcept {
  std::vector<Block> unread{first};
  while (!unread.empty()) {
    const Block b = unread.back();
    unread.pop_back();
    BlockEntry& entry = blocks_[b];
    if (!entry.alive || needed(entry)) continue;
    if (entry.resident) {  // nothing reads the block, and it will not be computed again: other calls cost the same without it
      note_resident(b, false);
      forget_costs_of_results(entry.maker);
      owner_.free(b);
    }
    const Call maker = std::exchange(entry.maker, kNone);
    retire(b);
    if (maker == kNone) continue;
    std::replace(calls_[maker].results.begin(), calls_[maker].results.end(), b, Block{kNone});
    if (--calls_[maker].live_results == 0) drop_call(maker, &unread);
  }
}

// ---- blocks whose bytes change or that nobody holds ----

// The calls that need the bytes of a block to run again, and the results of these calls: calls that read the block, and calls
// that read evicted blocks which the program does not hold and which are computed from it.
struct EvictionLog::Dependents {
  std::vector<Call> calls;
  std::vector<Block> resident;
  std::vector<Block> evicted;  // and held by the program: they must be computed before the bytes change
  std::vector<Block> between;  // evicted, and not held by the program
};

EvictionLog::Dependents EvictionLog::dependents(Block b) {
  Dependents of;
  std::vector<Block> from{b};
  ++mark_;
  for (std::size_t k = 0; k < from.size(); ++k)
    for (const Reader& reader : blocks_[from[k]].readers) {
      if (std::exchange(calls_[reader.call].mark, mark_) == mark_) continue;
      of.calls.push_back(reader.call);
      for (Block result : calls_[reader.call].results) {
        if (result == kNone || std::exchange(blocks_[result].mark, mark_) == mark_) continue;
        const BlockEntry& entry = blocks_[result];
        if (entry.resident)
          of.resident.push_back(result);
        else if (entry.held)
          of.evicted.push_back(result);
        else
          of.between.push_back(result), from.push_back(result);
      }
    }
  return of;
}

// Forgets the calls. Their results cannot be computed again afterwards.
void EvictionLog::make_independent(const Dependents& of) noexcept {
  std::vector<Block> unread;
  for (Call c : of.calls) {
    for (Block result : calls_[c].results) {
      if (result == kNone) continue;
      blocks_[result].maker = kNone;
      update_candidate(result);
    }
    drop_call(c, &unread);
  }
  for (Block b : of.between) unread.push_back(b);
  for (Block b : unread) drop_unneeded(b);
}

void EvictionLog::before_write(Block b) {
  read(b);
  lock(b);
  std::vector<Block> locked{b}, freed;
  try {
    for (Dependents of = dependents(b);; of = dependents(b)) {
      if (of.evicted.empty()) {
        make_independent(of);
        freed = of.resident;
        break;
      }
      read(of.evicted.front());
      lock(of.evicted.front());
      locked.push_back(of.evicted.front());
    }
  } catch (...) {
    for (Block at : locked) unlock(at);
    throw;
  }
  for (Block at : locked) unlock(at);
  forget_maker(b);
  settle(std::move(freed));
}

// The block is not computed again any more. Its call stays for its other results.
void EvictionLog::forget_maker(Block b) noexcept {
  const Call maker = std::exchange(blocks_[b].maker, kNone);
  if (maker == kNone) return;
  update_candidate(b);
  std::replace(calls_[maker].results.begin(), calls_[maker].results.end(), b, Block{kNone});
  std::vector<Block> unread;
  if (--calls_[maker].live_results == 0) drop_call(maker, &unread);
  for (Block at : unread) drop_unneeded(at);
}

// Whether the calls cost more memory than they can save. That is so if the blocks that only these calls keep in memory have as
// many bytes as the blocks that the calls can compute again, or if there are very many calls for few such blocks.
bool EvictionLog::should_forget(const Dependents& of) noexcept {
  if (!of.evicted.empty()) return false;
  if (of.calls.size() > 16 * (of.resident.size() + 64)) return true;
  std::int64_t made = 0, read = 0;
  for (Block result : of.resident) made += blocks_[result].bytes;
  for (Call c : of.calls)  // dependents() has marked them
    for (Block operand : calls_[c].operands) {
      BlockEntry& entry = blocks_[operand];
      if (entry.held || !entry.resident || entry.maker != kNone || std::exchange(entry.mark, mark_) == mark_) continue;
      const bool only = std::all_of(entry.readers.begin(), entry.readers.end(),
                                    [this](const Reader& reader) { return calls_[reader.call].mark == mark_; });
      if (only) read += entry.bytes;
    }
  return read >= made;
}

// Looks at resident blocks that the program does not hold and that no call makes. Such a block stays in memory only for the
// calls that read it. If these calls cannot save as many bytes, they are forgotten and the block is freed. Their results are
// then looked at in turn, because no call makes them any more.
void EvictionLog::settle(std::vector<Block> outside) noexcept {
  while (!outside.empty()) {
    const Block b = outside.back();
    outside.pop_back();
    const BlockEntry& entry = blocks_[b];
    if (!entry.alive || entry.held || entry.maker != kNone || entry.pins > 0 || entry.locks > 0) continue;
    const Dependents of = dependents(b);
    if (!should_forget(of)) {
      kept_bytes_ += entry.bytes;
      continue;
    }
    make_independent(of);
    outside.insert(outside.end(), of.resident.begin(), of.resident.end());
  }
}

// Forgets old calls. A program that computes each value from the value before, as p = p - g, would keep the calls and inputs of
// all its steps. Together they may cost more memory than they save, even if none of them does alone. So this function looks
// now and then at four of the blocks that the program does not hold, first at the oldest, and forgets the calls that depend on
// them if should_forget() says so.
void EvictionLog::shorten() noexcept {
  let_go_ = kept_bytes_ = 0;
  std::vector<Block> unheld;
  for (Block b = 0; b < static_cast<Block>(blocks_.size()); ++b) {
    const BlockEntry& entry = blocks_[b];
    if (entry.alive && !entry.held && entry.locks == 0 && (entry.maker == kNone || !entry.resident)) unheld.push_back(b);
  }
  std::sort(unheld.begin(), unheld.end(), [this](Block a, Block b) {
    const double x = blocks_[a].used, y = blocks_[b].used;
    return x != y ? x < y : a < b;
  });
  for (const std::size_t part : {0, 1, 2, 4}) {
    if (unheld.empty()) return;
    const Block b = unheld[unheld.size() * part / 8];
    if (!blocks_[b].alive || blocks_[b].held) continue;
    const Dependents of = dependents(b);
    if (!should_forget(of)) continue;
    make_independent(of);
    settle(of.resident);
  }
  kept_bytes_ = 0;
}

bool EvictionLog::close() noexcept {
  for (const BlockEntry& entry : blocks_)
    if (entry.alive && ((entry.held && !entry.resident) || entry.locks > 0)) return false;
  std::vector<Block> unread;
  for (BlockEntry& entry : blocks_) entry.maker = kNone;
  for (Call c = 0; c < static_cast<Call>(calls_.size()); ++c)
    if (calls_[c].alive) drop_call(c, &unread);
  for (Block b = 0; b < static_cast<Block>(blocks_.size()); ++b) {
    if (!blocks_[b].alive) continue;
    update_candidate(b);
    if (!blocks_[b].held) {
      drop_unneeded(b);
      continue;
    }
    counts_.resident_bytes -= blocks_[b].bytes;
    retire(b);
  }
  return true;
}

}  // namespace tapedeck
