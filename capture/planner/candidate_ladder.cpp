#include <tapedeck/capture/planner/candidate_ladder.h>

#include <tapedeck/capture/planner/planning.h>

#include <algorithm>
#include <tuple>

namespace tapedeck {

namespace {

constexpr std::size_t kManyLadderNodes = 5000;  // beyond, few candidates are placed

// The layouts of a few candidates were searched before any budget was known: of keep-all, and of the lowest candidates.
std::vector<Candidate*> searched_before(const Allowed& allowed, Planning* p) {
  std::vector<Candidate*> searched;
  for (Candidate& c : p->candidates)
    if (c.searched && allowed(c)) searched.push_back(&c);
  return searched;
}

// The floor is the same number with and without a budget. So a candidate that was found only because a budget was asked for, or
// was not placed when the floor was found, does not fit if its peak is below the floor.
bool fits(Candidate& c, std::int64_t budget, std::int64_t floor, CandidateLayouts* layouts) {
  if (c.live_peak > budget) return false;
  const std::int64_t peak = layouts->peak(c);
  return peak <= budget && peak >= floor;
}

}  // namespace

bool places_few_candidates(const Planning& p) { return p.step_size().nodes > kManyLadderNodes; }

std::vector<Candidate*> ladder_to_floor(std::int64_t floor, const Allowed& allowed, Planning* p) {
  const std::vector<Candidate*> searched = searched_before(allowed, p);
  const auto lowest = std::find_if(searched.begin(), searched.end(), [&](const Candidate* c) { return c->peak == floor; });
  if (lowest == searched.end()) return {};
  std::vector<Candidate*> cheaper, ladder;
  for (Candidate& c : p->candidates)
    if (allowed(c) && c.cost < (*lowest)->cost) cheaper.push_back(&c);
  const auto rank = [](const Candidate* c) { return std::tuple(c->cost, !c->keeps_all(), c->live_peak, c->number); };
  std::sort(cheaper.begin(), cheaper.end(), [&](const Candidate* a, const Candidate* b) { return rank(a) < rank(b); });
  for (Candidate* c : cheaper)
    if (ladder.empty() || c->live_peak < ladder.back()->live_peak) ladder.push_back(c);
  ladder.push_back(*lowest);
  return ladder;
}

Candidate* cheapest_on_ladder(const std::vector<Candidate*>& ladder, std::int64_t budget, std::int64_t floor,
                              const Allowed& allowed, Planning* p) {
  if (budget < floor) return nullptr;
  std::size_t first = 0, last = ladder.size() - 1;
  while (first < last) {
    const std::size_t middle = (first + last) / 2;
    if (fits(*ladder[middle], budget, floor, &p->layouts))
      last = middle;
    else
      first = middle + 1;
  }
  Candidate* best = ladder[last];
  for (Candidate* c : searched_before(allowed, p))
    if (fits(*c, budget, floor, &p->layouts) && (c->cost < best->cost || (c->cost == best->cost && c->keeps_all()))) best = c;
  return best;
}

}  // namespace tapedeck
