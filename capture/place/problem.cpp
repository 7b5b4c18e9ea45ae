#include <tapedeck/capture/place/problem.h>

#include <algorithm>
#include <numeric>

namespace tapedeck {

PlaceProblem make_problem(const std::vector<Tenant>& all) {
  PlaceProblem p;
  std::vector<std::int32_t> births;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].bytes <= 0) continue;
    p.buffers.push_back(all[i]);
    p.original.push_back(static_cast<std::int32_t>(i));
    births.push_back(all[i].birth);
  }
  std::sort(births.begin(), births.end());
  births.erase(std::unique(births.begin(), births.end()), births.end());
  p.steps = static_cast<std::int32_t>(births.size());
  p.load.assign(static_cast<std::size_t>(p.steps) + 1, 0);
  for (Tenant& b : p.buffers) {
    b.birth = static_cast<std::int32_t>(std::lower_bound(births.begin(), births.end(), b.birth) - births.begin());
    b.death = static_cast<std::int32_t>(std::upper_bound(births.begin(), births.end(), b.death) - births.begin()) - 1;
    b.death = std::max(b.death, b.birth);
    p.load[b.birth] += b.bytes;
    p.load[b.death + 1] -= b.bytes;
  }
  std::partial_sum(p.load.begin(), p.load.end(), p.load.begin());
  p.load.pop_back();
  for (std::int64_t bytes : p.load) p.bound = std::max(p.bound, bytes);
  return p;
}

}  // namespace tapedeck
