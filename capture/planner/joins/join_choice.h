// Which joins are worth having their parts in place (analysis/parts.h), by exact live bytes.
#pragma once

#include <tapedeck/capture/planner/facts/facts.h>

namespace tapedeck {

// Writing parts in place saves the copies, and the bytes that the parts would have beside the whole; but the whole is alive
// from the first part on. All joins are taken if the peak of live bytes does not grow by it. Else joins are tried in halves
// down to single joins, a single join with all of its operands, then with the later half, then with the last, and a trial is
// taken if the peak does not grow. No more than `most_trials` are made. Deterministic. Cost: that many walks. `first`: a choice
// that is tried before all others; none if empty. REQUIRES: facts are as collect_facts() leaves them.
inline constexpr int kMostTrials = 96;
void share_parts(const Readers& readers, Facts* facts, int most_trials = kMostTrials, const PartChoice& first = {});

// What there is to choose from (find_part_places), and the facts with what was chosen in place. REQUIRES: `plain` as above.
std::vector<PartPlace> part_places(const Readers& readers, const Facts& plain);
Facts with_chosen(const Readers& readers, const Facts& plain, const PartChoice& choice);

// A quick look: no if the graph joins nothing.
bool may_share_parts(const Facts& facts);

}  // namespace tapedeck
