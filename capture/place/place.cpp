#include <tapedeck/capture/place/place.h>

#include <tapedeck/capture/place/greedy.h>

namespace tapedeck {

Offsets place(const std::vector<Tenant>& buffers, const PlaceOptions&) {
  const PlaceProblem p = make_problem(buffers);
  return to_offsets(p, place_greedily(p), buffers.size());
}

}  // namespace tapedeck
