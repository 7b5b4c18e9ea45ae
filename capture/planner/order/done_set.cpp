// Runs items one by one and keeps three things up to date: the bytes alive, the items that could run next, and for each of
// these items the bytes that would be alive while and after it runs. Running an item changes only items that read what it
// reads, or that wait for it.
#include <tapedeck/capture/planner/order/done_set.h>

#include <tapedeck/capture/analysis/takeovers.h>

#include <algorithm>

namespace tapedeck {

namespace {

// A hash of a set is the sum of its items' hashes (splitmix64), so that the order in which they ran does not count.
std::uint64_t hash_of(std::int32_t item) {
  std::uint64_t x = static_cast<std::uint64_t>(item) * 0x9E3779B97F4A7C15u + 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

}  // namespace

DownSet OrderStepper::start() {
  DownSet set;
  set.done.assign((static_cast<std::size_t>(p_.item_count()) + 63) / 64, 0);
  for (std::int32_t i = 0; i < p_.item_count(); ++i)
    if (p_.before[i].empty()) set.ready.push_back(look(set, i));
  return set;
}

void OrderStepper::run(DownSet* set, std::size_t ready) {
  const ReadyItem ran = set->ready[ready];
  set->ready[ready] = set->ready.back();
  set->ready.pop_back();
  set->done[static_cast<std::size_t>(ran.item) / 64] |= std::uint64_t{1} << (ran.item % 64);
  set->hash += hash_of(ran.item);
  ++set->n_done;
  set->peak = std::max(set->peak, set->live + ran.extra);
  set->live += ran.net;
  // Whoever would have opened a whole finds it open.
  for (std::int32_t v : p_.opens[ran.item])
    for (ReadyItem& r : set->ready)
      if (const auto opens = p_.opens[r.item]; std::find(opens.begin(), opens.end(), v) != opens.end()) r = look(*set, r.item);
  // Whoever is now the last to read a value frees it, which it did not before.
  for (std::int32_t v : p_.reads[ran.item]) {
    const std::int32_t reader = only_reader_left(*set, v);
    if (reader == kNone) continue;
    const auto at = std::find_if(set->ready.begin(), set->ready.end(), [&](const ReadyItem& r) { return r.item == reader; });
    if (at != set->ready.end()) *at = look(*set, reader);
  }
  for (std::int32_t next : p_.behind[ran.item])
    if (can_run(*set, next)) set->ready.push_back(look(*set, next));
}

bool OrderStepper::can_run(const DownSet& set, std::int32_t item) {
  const auto before = p_.before[item];
  work_ += static_cast<std::int64_t>(before.size());
  return std::all_of(before.begin(), before.end(), [&](std::int32_t b) { return set.has_run(b); });
}

// kNone if none or more than one has not run.
std::int32_t OrderStepper::only_reader_left(const DownSet& set, std::int32_t value) {
  std::int32_t left = kNone;
  for (std::int32_t r : p_.readers[value]) {
    ++work_;
    if (set.has_run(r)) continue;
    if (left != kNone) return kNone;
    left = r;
  }
  return left;
}

bool OrderStepper::dies_with(const DownSet& set, std::int32_t value, std::int32_t item) {
  for (std::int32_t r : p_.readers[value]) {
    ++work_;
    if (r != item && !set.has_run(r)) return false;
  }
  return true;
}

bool OrderStepper::is_open(const DownSet& set, std::int32_t whole) {
  const auto openers = p_.openers[whole];
  work_ += static_cast<std::int64_t>(openers.size());
  return std::any_of(openers.begin(), openers.end(), [&](std::int32_t o) { return set.has_run(o); });
}

ReadyItem OrderStepper::look(const DownSet& set, std::int32_t item) {
  std::int64_t made = 0, freed = 0, taken = 0;
  for (std::int32_t v : p_.makes[item]) {
    made += p_.bytes[v];
    if (p_.readers[v].empty()) freed += p_.bytes[v];
  }
  for (std::int32_t v : p_.opens[item])
    if (!is_open(set, v)) made += p_.bytes[v];
  for (std::int32_t v : p_.reads[item])
    if (dies_with(set, v, item)) freed += p_.bytes[v];
  take_over_in_place(
      p_.handovers_of(item), [&](std::int32_t v) { return dies_with(set, v, item); },
      [&](const Handover& h) { taken += p_.bytes[h.from]; });
  return {item, made + p_.scratch[item] - taken, made - freed};
}

}  // namespace tapedeck
