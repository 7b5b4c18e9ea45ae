// Implements shrink.h by delta debugging: first large chunks of a program are dropped, then small ones.
#include <tapedeck/tests/agree/shrink.h>

#include <algorithm>

namespace tapedeck::agree {

namespace {

// Removes chunks of items while the program still fails: first chunks of half the list, at last single items.
template <class T>
bool drop_items(std::vector<T>& items, const std::function<bool()>& still_fails) {
  bool dropped = false;
  for (std::size_t chunk = std::max<std::size_t>(items.size() / 2, 1); !items.empty();
       chunk = std::max<std::size_t>(chunk / 2, 1)) {
    bool here = false;
    for (std::size_t at = items.size(); at > 0;) {
      const std::size_t first = at > chunk ? at - chunk : 0;
      std::vector<T> before = items;
      items.erase(items.begin() + static_cast<std::ptrdiff_t>(first), items.begin() + static_cast<std::ptrdiff_t>(at));
      if (still_fails())
        here = true;
      else
        items = std::move(before);
      at = first;
    }
    dropped |= here;
    if (chunk == 1 && !here) break;
  }
  return dropped;
}

bool drop_lines(std::vector<Line>& lines, const std::function<bool()>& still_fails) {
  bool dropped = drop_items(lines, still_fails);
  for (Line& line : lines)
    if (!line.body.empty()) dropped |= drop_lines(line.body, still_fails);
  return dropped;
}

}  // namespace

RandomProgram shrunk(RandomProgram program, const Fails& fails) {
  const auto still_fails = [&] { return fails(program); };
  if (program.trainer != Trainer::none) {
    const Trainer before = std::exchange(program.trainer, Trainer::none);
    if (!still_fails()) program.trainer = before;
  }
  while (drop_lines(program.lines, still_fails) || drop_items(program.outputs, still_fails) ||
         drop_items(program.losses, still_fails) || drop_items(program.leaves, still_fails)) {
  }
  return program;
}

std::string failure_of(std::uint64_t seed, const Harness& harness) {
  Harness h = harness;
  h.seed = seed;
  const RandomProgram program = random_program(seed);
  const Verdict verdict = check_agreement(builder_of(program), h);
  if (verdict.agrees()) return "";
  if (verdict.kind == Verdict::Kind::illegal)
    return fmt::format("seed {}: the generator made an illegal program: {}", seed, verdict.text());
  // A smaller program must fail in the same manner: an exception must not stand in for a difference in bits, nor the other
  // way round.
  const auto throws = [](const Verdict& v) { return v.what.rfind("throws ", 0) == 0; };
  const auto fails = [&](const RandomProgram& p) {
    const Verdict v = check_agreement(builder_of(p), h);
    return v.kind == Verdict::Kind::differs && throws(v) == throws(verdict);
  };
  const RandomProgram small = shrunk(program, fails);
  return fmt::format("seed {}: {}\nshrunk from {} lines to {}: {}\n{}run it again: tests/fuzz --seed {} --programs 1\n", seed,
                     verdict.text(), line_count(program), line_count(small), check_agreement(builder_of(small), h).text(),
                     text_of(small), seed);
}

}  // namespace tapedeck::agree
