#include <tapedeck/capture/planner/scans/scan_blocks.h>

#include <tapedeck/engine/control/control.h>
#include <tapedeck/engine/ir/extract.h>
#include <tapedeck/engine/ops/control.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace tapedeck {

namespace {

using Given = RerunScan::Given;
using Values = std::vector<ValueId>;

constexpr std::size_t kMostLengths = 4;            // of the blocks of one pair
constexpr std::int64_t kLargestDivisor = 1 << 16;  // that is looked for

// The body of a scan over blocks while it is built. Its inputs stand for inputs of one pass: a slice stands for the slices of
// all passes of the block.
class BlockWriter {
 public:
  BlockWriter(const RerunScan& scan, std::int64_t passes) : whole_(scan.whole()), passes_(passes) {
    body_.name = whole_.name;
    body_.add_input(names_.fresh("block"), Type{DType::i64, {}});
  }

  ValueId add(ValueId inside) { return body_.add_input(names_.fresh(stem(inside)), whole_.values[inside].type); }
  ValueId add_slices(ValueId inside) {
    return body_.add_input(names_.fresh(stem(inside)), stack_type(passes_, whole_.values[inside].type));
  }

  // Appends a scan over the passes of the block, whose pass makes `results` of `inputs`; the first `carried` of both are
  // carried. Returns its first result.
  ValueId append_scan(const Values& operands, const Values& inputs, const Values& results, std::size_t carried,
                      std::size_t scanned, bool reverse) {
    LoopAttrs attrs;
    attrs.carried = static_cast<std::int64_t>(carried);
    attrs.scanned = static_cast<std::int64_t>(scanned);
    attrs.trips = passes_;
    attrs.reverse = reverse;
    std::vector<Type> types;
    for (std::size_t k = 0; k < results.size(); ++k) {
      const Type& type = whole_.values[results[k]].type;
      types.push_back(k < carried ? type : stack_type(passes_, type));
    }
    const Region pass[] = {std::make_shared<const Graph>(extract(whole_, inputs, results))};
    return body_.nodes[body_.add_node(ops::scan, operands, &attrs, types, {}, {}, pass)].first_output;
  }

  Region finish(Values outputs) {
    body_.outputs = std::move(outputs);
    return std::make_shared<const Graph>(std::move(body_));
  }

 private:
  std::string stem(ValueId inside) const {
    const Name name = whole_.values[inside].name;
    return name.empty() ? "given" : name.str();
  }

  const Graph& whole_;
  const std::int64_t passes_;
  Graph body_;
  TakenNames names_;
};

void append_range(ValueId first, std::size_t n, Values* values) {
  for (std::size_t k = 0; k < n; ++k) values->push_back(first + static_cast<ValueId>(k));
}

// The operands that the blocks have as inputs, and the inputs of one pass that they are.
struct BlockInputs {
  Values starts, slices, captured;  // in the body; by number in RerunScan, kNone if the body does not read them
};

// Appends the forward's own passes over the block: `results` after the carried values.
ValueId append_passes_again(const RerunScan& scan, const BlockInputs& in, Values results, bool reverse, BlockWriter* writer) {
  const LoopLayout& a = scan.pair().ahead;
  Values operands = in.starts, inputs{scan.index()};
  operands.insert(operands.end(), in.slices.begin(), in.slices.begin() + static_cast<std::ptrdiff_t>(a.scanned));
  operands.insert(operands.end(), in.captured.begin(), in.captured.begin() + static_cast<std::ptrdiff_t>(a.captured));
  for (const Given& g : scan.carried()) inputs.push_back(g.inside);
  for (std::size_t i = 0; i < a.scanned; ++i) inputs.push_back(scan.slices()[i].inside);
  for (std::size_t i = 0; i < a.captured; ++i) inputs.push_back(scan.captured()[i].inside);
  Values all(scan.made().begin(), scan.made().begin() + static_cast<std::ptrdiff_t>(a.carried));
  all.insert(all.end(), results.begin(), results.end());
  return writer->append_scan(operands, inputs, all, a.carried, a.scanned, reverse);
}

// Adds the slices and captured values that the body needs: all of the forward, and the ones that are marked in `needed`.
void add_given(const RerunScan& scan, const std::vector<bool>& needed, BlockInputs* in, BlockBody* block, BlockWriter* writer) {
  const LoopLayout& a = scan.pair().ahead;
  for (std::size_t i = 0; i < scan.slices().size(); ++i) {
    const ValueId v = scan.slices()[i].inside;
    const bool reads = i < a.scanned || needed[v];
    in->slices.push_back(reads ? writer->add_slices(v) : kNone);
    if (reads) block->slices.push_back(i);
  }
  for (std::size_t i = 0; i < scan.captured().size(); ++i) {
    const ValueId v = scan.captured()[i].inside;
    const bool reads = i < a.captured || needed[v];
    in->captured.push_back(reads ? writer->add(v) : kNone);
    if (reads) block->captured.push_back(i);
  }
}

}  // namespace

std::vector<std::int64_t> block_lengths(const RerunScan& scan) {
  std::vector<std::int64_t> all;
  if (!scan.may_run_in_blocks()) return all;
  for (std::int64_t n = 2; n <= std::min(scan.passes() / n, kLargestDivisor); ++n) {
    if (scan.passes() % n != 0) continue;
    all.push_back(n);
    if (n * n != scan.passes()) all.push_back(scan.passes() / n);
  }
  std::sort(all.begin(), all.end());
  if (all.size() <= kMostLengths) return all;
  std::vector<std::int64_t> some;
  for (std::size_t i = 1; i <= kMostLengths; ++i) some.push_back(all[i * all.size() / kMostLengths - 1]);
  return some;
}

BlockBody forward_block(const RerunScan& scan, std::int64_t passes, const std::vector<std::int32_t>& stacked, bool reverse) {
  BlockWriter writer(scan, passes);
  BlockBody block;
  BlockInputs in;
  for (const Given& g : scan.carried()) in.starts.push_back(writer.add(g.inside));
  add_given(scan, std::vector<bool>(scan.whole().values.size(), false), &in, &block, &writer);
  Values results, outputs;
  for (const std::int32_t k : stacked) results.push_back(scan.made()[static_cast<std::size_t>(k)]);
  const ValueId first = append_passes_again(scan, in, results, reverse, &writer);
  append_range(first, scan.carried().size() + results.size(), &outputs);
  outputs.insert(outputs.end(), in.starts.begin(), in.starts.end());
  block.body = writer.finish(std::move(outputs));
  return block;
}

BlockBody backward_block(const RerunScan& scan, std::int64_t passes, const KeptStacks& kept, bool reverse, bool back_reverse) {
  const Graph& whole = scan.whole();
  BlockWriter writer(scan, passes);
  BlockBody block;
  BlockInputs in;
  Values operands, inputs{scan.index()}, again;
  for (const Given& g : scan.handed()) {
    operands.push_back(writer.add(g.inside));
    inputs.push_back(g.inside);
  }
  for (const Given& g : scan.carried()) in.starts.push_back(writer.add(g.inside));
  for (const std::int32_t k : kept.stacks) again.push_back(scan.made()[static_cast<std::size_t>(k)]);
  for (const std::size_t j : kept.carried) again.push_back(scan.carried()[j].inside);
  inputs.insert(inputs.end(), again.begin(), again.end());
  const std::vector<bool> needed = needed_values(whole, inputs, scan.results());
  add_given(scan, needed, &in, &block, &writer);
  const ValueId first = append_passes_again(scan, in, again, reverse, &writer);
  append_range(first + static_cast<ValueId>(scan.carried().size()), again.size(), &operands);
  std::size_t scanned = again.size();
  for (std::size_t i = 0; i < scan.slices().size(); ++i) {
    if (!needed[scan.slices()[i].inside]) continue;
    inputs.push_back(scan.slices()[i].inside);
    operands.push_back(in.slices[i]);
    ++scanned;
  }
  for (std::size_t i = 0; i < scan.captured().size(); ++i) {
    if (!needed[scan.captured()[i].inside]) continue;
    inputs.push_back(scan.captured()[i].inside);
    operands.push_back(in.captured[i]);
  }
  Values outputs;
  append_range(writer.append_scan(operands, inputs, scan.results(), scan.handed().size(), scanned, back_reverse),
               scan.results().size(), &outputs);
  block.body = writer.finish(std::move(outputs));
  return block;
}

}  // namespace tapedeck
