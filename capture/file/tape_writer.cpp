// TapeFile -> bytes. All checks of the contents come before the first byte is written.
#include <tapedeck/capture/file/tape_file.h>

#include <tapedeck/capture/formats/atomic_write.h>
#include <tapedeck/capture/formats/json.h>
#include <tapedeck/capture/formats/safetensors.h>
#include <tapedeck/engine/text/text.h>

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <set>
#include <utility>

namespace tapedeck {
namespace {

using namespace tape_file;

constexpr unsigned char kZeros[kAlignment] = {};

Bytes bytes_of_text(std::string_view text) { return {reinterpret_cast<const unsigned char*>(text.data()), text.size()}; }

const PrintOptions kPrint;

// Large constants leave the text and become tensors of the file. Captured and planned graph share their data, and so the name.
// Names are kept where they are unique, so that a file saved again stays the same.
class ConstantNames {
 public:
  explicit ConstantNames(const std::vector<Graph*>& graphs) {
    for (const Graph* g : graphs)
      for (const Literal& c : g->constants)
        if (!c.data && !c.tensor.empty()) taken_.insert(c.tensor.str());  // abstract: must not find the data of another
    for (Graph* g : graphs)
      for (Literal& c : g->constants)
        if (c.data && c.type.numel() > kPrint.max_inline_constant) name(c);
  }
  const std::vector<Literal>& stored() const { return stored_; }

 private:
  void name(Literal& c) {
    const auto [same, fresh] = index_.try_emplace({c.data.get(), to_string(c.type)}, stored_.size());
    if (!fresh) {
      c.tensor = stored_[same->second].tensor;
      return;
    }
    std::string name = c.tensor.str();
    for (int i = 0; name.empty() || taken_.count(name); ++i)
      name = fmt::format("c{}", stored_.size() + static_cast<std::size_t>(i));
    taken_.insert(name);
    c.tensor = Name(name);
    stored_.push_back(c);
  }

  std::set<std::string> taken_;
  std::map<std::pair<const void*, std::string>, std::size_t> index_;  // data and type -> position in stored_
  std::vector<Literal> stored_;
};

// A file cannot hold a function of this process.
void refuse_host_calls(const Graph& g) {
  for (NodeId n = 0; n < g.node_count(); ++n) {
    const Node& node = g.nodes[n];
    if (node.op->is(kHostCall))
      throw UsageError(fmt::format("save_tape: `{}`{} calls back into this process and cannot be saved", g.node_text(n),
                                   node.origin.site.empty() ? "" : fmt::format(" ({})", node.origin.site.view())));
    for (const Region& region : g.regions_of(node)) refuse_host_calls(*region);
  }
}

class TapeWriter {
 public:
  explicit TapeWriter(const TapeFile& file) : file_(file) {
    Graph captured = file.captured;
    refuse_host_calls(captured);
    Graph planned = file.plan ? file.plan->graph : Graph();
    const ConstantNames constants({&captured, &planned});

    add_text(kGraph, print(captured, kPrint));
    if (file.plan) {
      std::string difference = signature_difference(captured, planned);
      if (difference.empty()) difference = updates_difference(captured, *file.plan);
      if (!difference.empty()) throw UsageError("save_tape: the plan is not the captured graph's: " + difference);
      add_text(kPlannedGraph, print(planned, kPrint));
      add_text(kPlan, plan_to_json(*file.plan));
    }
    if (file.profile) add_text(kProfile, profile_to_json(*file.profile));
    add_tensors(kState, file.state, captured, captured.n_inputs, captured.n_state);
    add_tensors(kInput, file.inputs, captured, 0, captured.n_inputs);
    for (const Literal& c : constants.stored())
      add({std::string(kConstant) + c.tensor.str(),
           c.type,
           {static_cast<const unsigned char*>(c.data.get()), static_cast<std::size_t>(c.type.bytes())}});
    note_ops(captured);
    note_ops(planned);
    write_header();
  }

  void write_to(const std::string& path) const {
    AtomicWriter writer(path);
    writer.write(header_);
    for (const StoredTensor& t : tensors_) writer.write(t.bytes);
    writer.commit();
  }

 private:
  void add(StoredTensor tensor) {
    sums_.emplace_back(std::string(kChecksum) + tensor.name, checksum_text(checksum(tensor.bytes)));
    const std::size_t gap = (kAlignment - tensor.bytes.size() % kAlignment) % kAlignment;
    tensors_.push_back(std::move(tensor));
    if (gap == 0) return;
    const Type type{DType::u8, {static_cast<std::int64_t>(gap)}};
    tensors_.push_back({fmt::format("{}{}", kPad, n_pads_++), type, Bytes(kZeros, gap)});
  }

  void add_text(std::string_view name, std::string text) {
    const std::string& kept = texts_.emplace_back(std::move(text));
    add({std::string(name), {DType::u8, {static_cast<std::int64_t>(kept.size())}}, bytes_of_text(kept)});
  }

  // In the graph's order. Abstract tensors have nothing to store.
  void add_tensors(std::string_view prefix, const std::map<std::string, Tensor>& tensors, const Graph& graph, ValueId first,
                   std::int32_t n) {
    std::size_t found = 0;
    for (ValueId v = first; v < first + n; ++v) {
      const Value& value = graph.values[v];
      const auto it = tensors.find(value.name.str());
      if (it == tensors.end()) continue;
      ++found;
      const Tensor& tensor = it->second;
      if (!tensor.defined() || tensor.abstract()) continue;
      if (tensor.type() != value.type)
        throw UsageError(fmt::format("save_tape: {}{} is {}, the graph says {}", prefix, it->first, to_string(tensor.type()),
                                     to_string(value.type)));
      add({std::string(prefix) + it->first, value.type, dense_bytes(tensor, &copies_.emplace_back())});
    }
    if (found != tensors.size())
      throw UsageError(fmt::format("save_tape: the graph has no {}{}", prefix, stranger(tensors, graph, first, n)));
  }

  static std::string stranger(const std::map<std::string, Tensor>& tensors, const Graph& graph, ValueId first, std::int32_t n) {
    std::set<std::string> known;
    for (ValueId v = first; v < first + n; ++v) known.insert(graph.values[v].name.str());
    const auto it = std::find_if(tensors.begin(), tensors.end(), [&](const auto& t) { return !known.count(t.first); });
    return it == tensors.end() ? "" : it->first;
  }

  void note_ops(const Graph& graph) {
    for (const Node& node : graph.nodes)
      ops_.insert({std::string(kOpVersion) + node.op->name, std::to_string(node.op->version)});
  }

  void write_header() {
    std::vector<std::pair<std::string, std::string>> metadata = {{"tapedeck.header_checksum", std::string(kDigits, '0')},
                                                                 {std::string(kFormatKey), std::to_string(kFormat)}};
    metadata.insert(metadata.end(), ops_.begin(), ops_.end());
    metadata.insert(metadata.end(), sums_.begin(), sums_.end());
    for (const auto& [key, text] : file_.metadata) {
      if (is_reserved(key)) throw UsageError(fmt::format("save_tape: the metadata key {} is reserved", shown(key)));
      metadata.emplace_back(key, text);
    }
    header_ = safetensors_header(metadata, tensors_, kAlignment);
    header_.replace(kDigitsAt, kDigits, checksum_text(header_checksum(bytes_of_text(header_))));
  }

  const TapeFile& file_;
  std::vector<StoredTensor> tensors_;
  std::vector<std::pair<std::string, std::string>> sums_;
  std::set<std::pair<std::string, std::string>> ops_;
  std::deque<std::string> texts_;  // what tensors_ are windows on
  std::deque<std::vector<unsigned char>> copies_;
  std::string header_;
  int n_pads_ = 0;
};

}  // namespace

void save_tape(const std::string& path, const TapeFile& file) { TapeWriter(file).write_to(path); }

}  // namespace tapedeck
