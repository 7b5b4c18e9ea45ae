// Checks the buffers given to place(), and makes the instance that the searches work on:
//
//   buffers of no bytes, or whose holes cover their life, are left out
//   times become numbers of the steps at which some buffer's bytes begin to be needed
//   load and bound are computed, and fixed buffers are checked for overlaps
#include <tapedeck/capture/planner/place/place_problem.h>

#include <tapedeck/capture/planner/place/alive_steps.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <string>
#include <tuple>

namespace tapedeck {

namespace {

constexpr std::int64_t kMostBytes = std::int64_t{1} << 62;

[[noreturn]] void refuse(std::size_t i, const std::string& fault) { throw PlaceError({static_cast<std::int32_t>(i)}, fault); }

std::string named(const std::vector<std::int32_t>& buffers) {
  std::string text;
  for (std::int32_t i : buffers) text += (text.empty() ? "buffer " : " and buffer ") + std::to_string(i);
  return text;
}

void check_holes(std::size_t i, const Tenant& b) {
  std::int64_t last = std::int64_t{b.birth} - 1;
  for (const Steps& hole : b.holes) {
    if (hole.first <= last || hole.last < hole.first || hole.last > b.death)
      refuse(i, "has a hole " + std::to_string(hole.first) + ".." + std::to_string(hole.last) +
                    " that is empty, out of order, meets another, or lies outside of its life");
    last = hole.last;
  }
}

void check(const std::vector<Tenant>& all) {
  std::int64_t left = kMostBytes, farthest = 0;
  std::size_t who = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Tenant& b = all[i];
    if (b.bytes < 0) refuse(i, "has a negative size, " + std::to_string(b.bytes));
    if (b.alignment < 1) refuse(i, "has alignment " + std::to_string(b.alignment) + ": it must be at least 1");
    if (b.death < b.birth)
      refuse(i, "dies at step " + std::to_string(b.death) + ", before its birth at " + std::to_string(b.birth));
    check_holes(i, b);
    if (std::max(b.fixed, b.hint) > farthest) farthest = std::max(b.fixed, b.hint), who = i;
    if (b.bytes > left || b.alignment > left - b.bytes)
      refuse(i, "makes it more than 2^62 bytes in all, each with its alignment");
    left -= b.bytes + b.alignment;
  }
  if (farthest > left) refuse(who, "has an offset beyond 2^62, " + std::to_string(farthest) + ", with what may lie above it");
}

// Removes the holes at the beginning and the end of a life. Returns false if nothing of the life is left.
bool trim(Tenant* b) {
  while (!b->holes.empty() && b->holes.front().first == b->birth) {
    if (b->holes.front().last == b->death) return false;
    b->birth = b->holes.front().last + 1;
    b->holes.erase(b->holes.begin());
  }
  while (!b->holes.empty() && b->holes.back().last == b->death) {
    b->death = b->holes.back().first - 1;
    b->holes.pop_back();
  }
  return true;
}

// Renumbers steps as indices into `begins`.
class Clock {
 public:
  explicit Clock(std::vector<std::int32_t> begins) : begins_(std::move(begins)) {
    std::sort(begins_.begin(), begins_.end());
    begins_.erase(std::unique(begins_.begin(), begins_.end()), begins_.end());
  }

  std::int32_t steps() const { return static_cast<std::int32_t>(begins_.size()); }
  std::int32_t at_or_after(std::int32_t step) const {
    return static_cast<std::int32_t>(std::lower_bound(begins_.begin(), begins_.end(), step) - begins_.begin());
  }
  std::int32_t at_or_before(std::int32_t step) const {
    return static_cast<std::int32_t>(std::upper_bound(begins_.begin(), begins_.end(), step) - begins_.begin()) - 1;
  }

  void apply(Tenant* b) const {
    std::vector<Steps> holes;
    for (const Steps& hole : b->holes) {
      const Steps dense{at_or_after(hole.first), at_or_before(hole.last)};
      if (dense.first > dense.last) continue;
      if (!holes.empty() && holes.back().last + 1 == dense.first) {
        holes.back().last = dense.last;
      } else {
        holes.push_back(dense);
      }
    }
    b->birth = at_or_after(b->birth);
    b->death = at_or_before(b->death);
    b->holes = std::move(holes);
  }

 private:
  std::vector<std::int32_t> begins_;
};

// A sweep over time. A fixed buffer is compared with its neighbours in the order of offsets among the fixed buffers alive.
void check_fixed(const PlaceProblem& p) {
  // Step, begins, buffer. An end stands at the step after the last one, and is sorted before the beginnings at that step.
  std::vector<std::tuple<std::int32_t, bool, std::int32_t>> events;
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(p.buffers.size()); ++i) {
    if (p.buffers[i].fixed < 0) continue;
    each_alive(p.buffers[i], [&](const Steps& range) {
      events.emplace_back(range.first, true, i);
      events.emplace_back(range.last + 1, false, i);
    });
  }
  std::sort(events.begin(), events.end());
  std::map<std::int64_t, std::int32_t> alive;
  const auto meet = [&](std::int32_t x, std::int32_t y) {
    throw PlaceError({p.original[x], p.original[y]}, "are fixed to bytes that overlap while both are alive");
  };
  for (const auto& [step, begins, i] : events) {
    const Tenant& b = p.buffers[i];
    if (!begins) {
      alive.erase(b.fixed);
      continue;
    }
    const auto above = alive.lower_bound(b.fixed);
    if (above != alive.end() && above->first < b.fixed + b.bytes) meet(above->second, i);
    if (above != alive.begin()) {
      const auto below = std::prev(above);
      if (below->first + p.buffers[below->second].bytes > b.fixed) meet(below->second, i);
    }
    alive.emplace(b.fixed, i);
  }
}

void add_load(PlaceProblem* p) {
  p->load.assign(static_cast<std::size_t>(p->steps) + 1, 0);
  for (const Tenant& b : p->buffers) {
    each_alive(b, [&](const Steps& range) {
      p->load[range.first] += b.bytes;
      p->load[range.last + 1] -= b.bytes;
    });
    if (b.fixed >= 0) p->bound = std::max(p->bound, b.fixed + b.bytes);
  }
  std::partial_sum(p->load.begin(), p->load.end(), p->load.begin());
  p->load.pop_back();
  for (std::int64_t bytes : p->load) p->bound = std::max(p->bound, bytes);
}

}  // namespace

std::size_t PlaceProblem::stretches() const {
  std::size_t sum = buffers.size();
  for (const Tenant& b : buffers) sum += b.holes.size();
  return sum;
}

PlaceError::PlaceError(std::vector<std::int32_t> buffers, const std::string& fault)
    : UsageError(named(buffers) + " " + fault), buffers_(std::move(buffers)), fault_(fault) {}

PlaceProblem make_problem(const std::vector<Tenant>& all) {
  check(all);
  PlaceProblem p;
  std::vector<std::int32_t> begins;
  for (std::size_t i = 0; i < all.size(); ++i) {
    Tenant b = all[i];
    if (b.bytes == 0 || !trim(&b)) {
      if (b.fixed >= 0) p.left_out.emplace_back(static_cast<std::int32_t>(i), b.fixed);
      continue;
    }
    each_alive(b, [&](const Steps& range) { begins.push_back(range.first); });
    p.buffers.push_back(std::move(b));
    p.original.push_back(static_cast<std::int32_t>(i));
  }
  const Clock clock(std::move(begins));
  p.steps = clock.steps();
  for (Tenant& b : p.buffers) clock.apply(&b);
  check_fixed(p);
  add_load(&p);
  return p;
}

}  // namespace tapedeck
