// Splits an instance into parts, and gives each part the form of the exact search; see split_problem.h.
//
//   buffers   [0,2] [1,3]      [5,6] [5,9]       no buffer lives across step 4
//   parts     {[0,2] [1,3]}    {[5,6] [5,9]}
//   sections  the steps 2, 3         6, 9        at which lives end
#include <tapedeck/capture/planner/place/split_problem.h>

#include <tapedeck/capture/planner/place/alive_steps.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

namespace tapedeck {

namespace {

// The numbers of the buffers, part by part, and inside a part by number.
std::vector<std::vector<std::int32_t>> cut(const PlaceProblem& p) {
  std::vector<std::int32_t> order(p.buffers.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int32_t x, std::int32_t y) { return p.buffers[x].birth < p.buffers[y].birth; });
  std::vector<std::vector<std::int32_t>> parts;
  std::int32_t last_death = -1;
  for (std::int32_t i : order) {
    if (p.buffers[i].birth > last_death) parts.emplace_back();
    parts.back().push_back(i);
    last_death = std::max(last_death, p.buffers[i].death);
  }
  for (auto& part : parts) std::sort(part.begin(), part.end());
  return parts;
}

class PartMaker {
 public:
  PartMaker(const PlaceProblem& p, std::vector<std::int32_t> buffers) : p_(p) { part_.buffers = std::move(buffers); }

  PlacePart make(std::int64_t most_pairs) && {
    find_unit();
    find_sections();
    find_spans();
    find_bound();
    if (memberships() <= most_pairs && words_of_a_search() <= kMostWordsOfASearch) {
      find_kinds();
      find_members();
      find_neighbours(most_pairs);
    }
    return std::move(part_);
  }

 private:
  const Tenant& buffer(std::int32_t i) const { return p_.buffers[part_.buffers[i]]; }
  std::int32_t count() const { return static_cast<std::int32_t>(part_.buffers.size()); }

  // In a placement where every buffer rests on another one or on the ground, an offset is a sum of sizes rounded up to
  // alignments. So a number that divides all sizes, alignments and fixed offsets divides all offsets.
  void find_unit() {
    std::int64_t unit = 0;
    for (std::int32_t i = 0; i < count(); ++i)
      unit = std::gcd(std::gcd(unit, buffer(i).bytes), std::max<std::int64_t>(buffer(i).fixed, 0));
    for (bool changed = true; changed;) {
      changed = false;
      for (std::int32_t i = 0; i < count(); ++i)
        if (unit % buffer(i).alignment != 0 && buffer(i).alignment % unit != 0) {
          unit = std::gcd(unit, buffer(i).alignment);
          changed = true;
        }
    }
    part_.unit = unit;
    for (std::int32_t i = 0; i < count(); ++i) {
      const Tenant& b = buffer(i);
      part_.units.push_back(b.bytes / unit);
      part_.alignment.push_back(unit % b.alignment == 0 ? 1 : b.alignment / unit);
      part_.fixed.push_back(b.fixed < 0 ? -1 : b.fixed / unit);
      part_.has_holes |= !b.holes.empty();
      part_.has_fixed |= b.fixed >= 0;
    }
  }

  void find_sections() {
    first_ = buffer(0).birth;
    std::int32_t last = 0;
    for (std::int32_t i = 0; i < count(); ++i) {
      first_ = std::min(first_, buffer(i).birth);
      last = std::max(last, buffer(i).death);
    }
    std::vector<char> ends(static_cast<std::size_t>(last - first_) + 1, 0);
    for (std::int32_t i = 0; i < count(); ++i) each_alive(buffer(i), [&](const Steps& r) { ends[r.last - first_] = 1; });
    for (char end : ends) {
      section_from_.push_back(part_.sections);
      part_.sections += end;
    }
  }

  // Every interval contains the section at its own last step, so no range of sections is empty.
  void find_spans() {
    part_.spans_at.push_back(0);
    for (std::int32_t i = 0; i < count(); ++i) {
      each_alive(buffer(i), [&](const Steps& r) {
        part_.spans.push_back({section_from_[r.first - first_], section_from_[r.last - first_]});
      });
      part_.spans_at.push_back(static_cast<std::int32_t>(part_.spans.size()));
    }
  }

  void find_kinds() {
    using Look = std::tuple<std::int64_t, std::int64_t, std::int32_t, std::vector<std::int32_t>>;
    std::map<Look, std::int32_t> kinds;
    for (std::int32_t i = 0; i < count(); ++i) {
      std::vector<std::int32_t> life;
      for (std::int32_t k = part_.spans_at[i]; k < part_.spans_at[i + 1]; ++k)
        life.insert(life.end(), {part_.spans[k].first, part_.spans[k].last});
      Look look(part_.units[i], part_.alignment[i], part_.fixed[i] < 0 ? -1 : i, std::move(life));
      part_.kind.push_back(kinds.emplace(std::move(look), i).first->second);
    }
  }

  template <class Visit>
  void each_section(std::int32_t i, Visit&& visit) const {
    for (std::int32_t k = part_.spans_at[i]; k < part_.spans_at[i + 1]; ++k)
      for (std::int32_t t = part_.spans[k].first; t <= part_.spans[k].last; ++t) visit(t);
  }

  void find_members() {
    part_.members_at.assign(static_cast<std::size_t>(part_.sections) + 1, 0);
    for (std::int32_t i = 0; i < count(); ++i) each_section(i, [&](std::int32_t t) { ++part_.members_at[t + 1]; });
    std::partial_sum(part_.members_at.begin(), part_.members_at.end(), part_.members_at.begin());
    part_.members.resize(static_cast<std::size_t>(part_.members_at.back()));
    std::vector<std::int32_t> at(part_.members_at.begin(), part_.members_at.end() - 1);
    for (std::int32_t i = 0; i < count(); ++i) each_section(i, [&](std::int32_t t) { part_.members[at[t]++] = i; });
  }

  void find_bound() {
    std::vector<std::int64_t> change(static_cast<std::size_t>(part_.sections) + 1, 0);
    for (std::int32_t i = 0; i < count(); ++i) {
      if (part_.fixed[i] >= 0) part_.bound = std::max(part_.bound, part_.fixed[i] + part_.units[i]);
      for (std::int32_t k = part_.spans_at[i]; k < part_.spans_at[i + 1]; ++k) {
        change[part_.spans[k].first] += part_.units[i];
        change[part_.spans[k].last + 1] -= part_.units[i];
      }
    }
    std::int64_t alive = 0;
    for (std::int64_t c : change) part_.bound = std::max(part_.bound, alive += c);
  }

  // The words that a search needs: for every member, the set of decisions that raised it (exact_skyline.h).
  std::int64_t words_of_a_search() const { return std::int64_t{count()} * (count() / 64 + 1); }

  std::int64_t memberships() const {
    std::int64_t count = 0;
    for (const Steps& s : part_.spans) count += s.last - s.first + 1;
    return count;
  }

  void find_neighbours(std::int64_t most_pairs) {
    // By section: the members with a range that begins there.
    std::vector<std::vector<std::int32_t>> begin(static_cast<std::size_t>(part_.sections));
    for (std::int32_t i = 0; i < count(); ++i)
      for (std::int32_t k = part_.spans_at[i]; k < part_.spans_at[i + 1]; ++k) begin[part_.spans[k].first].push_back(i);
    std::vector<std::int32_t> seen(part_.buffers.size(), -1);
    part_.neighbours_at.push_back(0);
    for (std::int32_t i = 0; i < count(); ++i) {
      seen[i] = i;
      const auto add = [&](std::int32_t j) {
        if (seen[j] != i) part_.neighbours.push_back(j);
        seen[j] = i;
      };
      for (std::int32_t k = part_.spans_at[i]; k < part_.spans_at[i + 1]; ++k) {
        const Steps& span = part_.spans[k];
        for (std::int32_t m = part_.members_at[span.first]; m < part_.members_at[span.first + 1]; ++m) add(part_.members[m]);
        for (std::int32_t t = span.first + 1; t <= span.last; ++t) std::for_each(begin[t].begin(), begin[t].end(), add);
      }
      part_.neighbours_at.push_back(static_cast<std::int32_t>(part_.neighbours.size()));
      if (static_cast<std::int64_t>(part_.neighbours.size()) > most_pairs) {
        part_.neighbours = {};
        part_.neighbours_at = {};
        return;
      }
    }
  }

  const PlaceProblem& p_;
  PlacePart part_;
  std::int32_t first_ = 0;
  std::vector<std::int32_t> section_from_;  // by step of the part: the number of the first section at or after this step
};

}  // namespace

std::vector<PlacePart> split(const PlaceProblem& p, std::int64_t most_pairs) {
  std::vector<PlacePart> parts;
  for (auto& buffers : cut(p)) parts.push_back(PartMaker(p, std::move(buffers)).make(most_pairs));
  return parts;
}

}  // namespace tapedeck
