// Bytes -> TapeFile. Nothing is used before it is checked: container, format version, header checksum, the checksums of the
// parts that are read, op versions, then the contents against each other.
#include <tapedeck/capture/file/tape_file.h>

#include <tapedeck/capture/formats/file_bytes.h>
#include <tapedeck/capture/formats/json.h>
#include <tapedeck/capture/formats/safetensors.h>
#include <tapedeck/engine/text/text.h>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <memory>
#include <new>
#include <unordered_map>

namespace tapedeck {
namespace {

using namespace tape_file;

std::string_view text_of(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

std::shared_ptr<const void> aligned_copy(Bytes bytes) {
  constexpr std::align_val_t alignment{kAlignment};
  void* copy = ::operator new(std::max<std::size_t>(bytes.size(), 1), alignment);
  std::copy(bytes.begin(), bytes.end(), static_cast<unsigned char*>(copy));
  return {copy, [](void* p) { ::operator delete (p, std::align_val_t{kAlignment}); }};
}

class TapeReader {
 public:
  TapeReader(Bytes file, const std::string& path) : bytes_(file), path_(path), file_(parse_safetensors(file, path)) {}

  TapeFile read(Check check) {
    check_format();
    check_header();
    for (const StoredTensor& t : file_.tensors)
      if (check == Check::all || t.name == kGraph || t.name == kPlannedGraph || t.name == kPlan || t.name == kProfile)
        check_data(t);
    check_op_versions();

    TapeFile tape;
    tape.captured = read_graph(required(kGraph));
    check_ops_listed(tape.captured);
    read_plan(tape);
    read_profile(tape);
    read_tensors(tape);
    for (const auto& [key, text] : file_.metadata)
      if (!is_reserved(key)) tape.metadata.emplace(key, text);
    return tape;
  }

 private:
  [[noreturn]] void fail(const std::string& reason) const { throw FileError(fmt::format("{}: {}", path_, reason)); }

  const std::string* metadata(const std::string& key) const {
    const auto it = file_.metadata.find(key);
    return it == file_.metadata.end() ? nullptr : &it->second;
  }

  int version(const std::string& text, std::string_view of) const {
    int number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size() || number < 1)
      fail(fmt::format("the version of {} is not a number: {}", shown(of), shown(text)));
    return number;
  }

  // Before all checksums: a newer format may compute them in another way.
  void check_format() const {
    const std::string* format = metadata(std::string(kFormatKey));
    if (!format) fail("a safetensors file, but not a tape (no tapedeck.format in its metadata)");
    const int number = version(*format, "the format");
    if (number > kFormat)
      fail(fmt::format("written in format version {}, newer than version {} that this program reads", number, kFormat));
  }

  void check_header() const {
    std::uint64_t length;
    std::memcpy(&length, bytes_.data(), sizeof length);
    const Bytes header = bytes_.first(8 + length);
    const std::string_view text = text_of(header);
    if (header.size() < kDigitsAt + kDigits || text.substr(8, kHeaderStart.size()) != kHeaderStart)
      fail("the header does not begin with its checksum: damaged, or written by another program");
    if (parse_checksum(text.substr(kDigitsAt, kDigits)) != header_checksum(header))
      fail("the header is damaged (wrong checksum)");
  }

  void check_data(const StoredTensor& t) const {
    if (t.name.starts_with(kPad)) {
      if (std::any_of(t.bytes.begin(), t.bytes.end(), [](unsigned char b) { return b != 0; }))
        fail("padding is not zero: damaged");
      return;
    }
    const std::string* sum = metadata(std::string(kChecksum) + t.name);
    if (!sum) fail(fmt::format("tensor {} has no checksum", shown(t.name)));
    if (parse_checksum(*sum) != checksum(t.bytes)) fail(fmt::format("tensor {} is damaged (wrong checksum)", shown(t.name)));
  }

  void check_op_versions() const {
    for (const auto& [key, text] : file_.metadata) {
      if (!key.starts_with(kOpVersion)) continue;
      const std::string_view name = std::string_view(key).substr(kOpVersion.size());
      const int number = version(text, name);
      const Op* op = find_op(name);
      if (!op) fail(fmt::format("uses the op {}, which is unknown here", shown(name)));
      if (number > op->version)
        fail(fmt::format("uses version {} of the op {}, newer than version {} here", number, name, op->version));
    }
  }

  void check_ops_listed(const Graph& graph) const {
    for (const Node& node : graph.nodes)
      if (!metadata(std::string(kOpVersion) + node.op->name))
        fail(fmt::format("no version is given for the op {}", node.op->name));
  }

  const StoredTensor* find_text(std::string_view name) const {
    const StoredTensor* t = file_.find(std::string(name));
    if (t && (t->type.dtype != DType::u8 || t->type.shape.rank != 1))
      fail(fmt::format("{} is {}, and should be text in u8", name, to_string(t->type)));
    return t;
  }
  const StoredTensor& required(std::string_view name) const {
    const StoredTensor* t = find_text(name);
    if (!t) fail(fmt::format("there is no {} inside", name));
    return *t;
  }

  Graph read_graph(const StoredTensor& t) {
    const TensorLookup lookup = [&](const std::string& name, Literal* literal) { return find_constant(name, literal); };
    return parse(text_of(t.bytes), path_ + ":" + t.name, lookup);
  }

  // One copy of each, shared by both graphs. A copy, because the map would break if the file were overwritten in place. A
  // constant that the file lacks stays abstract, as state and inputs do.
  bool find_constant(const std::string& name, Literal* literal) {
    const auto [it, fresh] = constants_.try_emplace(name);
    const StoredTensor* t = fresh ? file_.find(std::string(kConstant) + name) : nullptr;
    if (t) {
      check_bools(t->type, t->bytes, t->name, path_);
      it->second = {t->type, aligned_copy(t->bytes), Name(name)};
    }
    if (it->second.data) *literal = it->second;
    return true;
  }

  void read_plan(TapeFile& tape) {
    const StoredTensor* plan = find_text(kPlan);
    const StoredTensor* graph = find_text(kPlannedGraph);
    if (!plan && !graph) return;
    if (!plan || !graph) fail("a plan needs both planned_graph and plan, and only one is inside");
    Graph planned = read_graph(*graph);
    check_ops_listed(planned);
    const std::string difference = signature_difference(tape.captured, planned);
    if (!difference.empty()) fail("the planned graph is not the captured one's: " + difference);
    try {
      tape.plan = parse_plan(std::string(text_of(plan->bytes)), std::move(planned));
    } catch (const InvalidGraphError& e) {
      fail(e.what());
    }
    const std::string updates = updates_difference(tape.captured, *tape.plan);
    if (!updates.empty()) fail("the plan is not the captured graph's: " + updates);
  }

  // Names that no node has are no error: passes of a later version may name nodes otherwise.
  void read_profile(TapeFile& tape) {
    const StoredTensor* profile = find_text(kProfile);
    if (!profile) return;
    try {
      tape.profile = parse_profile(text_of(profile->bytes));
    } catch (const FileError& e) {
      fail(e.what());
    }
  }

  // Tensors of names the graph does not know are left alone: a later version may have written them.
  void read_tensors(TapeFile& tape) {
    std::unordered_map<std::string_view, const Value*> state, inputs;
    const Graph& g = tape.captured;
    for (ValueId v = 0; v < g.n_inputs + g.n_state; ++v)
      (g.is_input(v) ? inputs : state)[g.values[v].name.view()] = &g.values[v];
    for (const StoredTensor& t : file_.tensors) {
      if (t.name.starts_with(kState)) read_tensor(t, kState, state, tape.state);
      if (t.name.starts_with(kInput)) read_tensor(t, kInput, inputs, tape.inputs);
    }
  }

  void read_tensor(const StoredTensor& t, std::string_view prefix,
                   const std::unordered_map<std::string_view, const Value*>& known,
                   std::map<std::string, Tensor>& tensors) const {
    const std::string name = t.name.substr(prefix.size());
    const auto it = known.find(name);
    if (it == known.end()) return;
    if (it->second->type != t.type)
      fail(fmt::format("{} is {}, the graph says {}", shown(t.name), to_string(t.type), to_string(it->second->type)));
    tensors.emplace(name, to_tensor(t, path_));
  }

  const Bytes bytes_;
  const std::string& path_;
  const Safetensors file_;
  std::unordered_map<std::string, Literal> constants_;
};

}  // namespace

std::uint64_t tape_file::header_checksum(Bytes length_and_header) {
  const std::string zeros(kDigits, '0');
  const std::uint64_t before = checksum(length_and_header.first(kDigitsAt));
  const std::uint64_t digits = checksum({reinterpret_cast<const unsigned char*>(zeros.data()), kDigits}, before);
  return checksum(length_and_header.subspan(kDigitsAt + kDigits), digits);
}

namespace {

// By value: whether it depends on `from`, over any number of nodes.
std::vector<char> dependent_values(const Graph& g, ValueId from) {
  std::vector<char> depends(g.values.size(), 0);
  depends[from] = 1;
  for (const Node& node : g.nodes) {
    const auto operands = g.inputs(node);
    const bool reads = std::any_of(operands.begin(), operands.end(), [&](ValueId v) { return depends[v] != 0; });
    for (std::int32_t i = 0; reads && i < node.n_outputs; ++i) depends[node.first_output + i] = 1;
  }
  return depends;
}

// A plan names the state whose updates it leaves out. Plans in files of earlier versions name none: then only a value that
// depends on the state could have been found to be the state itself.
bool may_leave_out(const Graph& captured, const Update& u, const Plan& plan) {
  const std::vector<std::string>& names = plan.unchanged_state;
  if (u.state == u.value) return true;
  if (names.empty()) return dependent_values(captured, u.state)[u.value] != 0;
  return std::find(names.begin(), names.end(), captured.value_name(u.state)) != names.end();
}

std::vector<Update> by_state(std::vector<Update> updates) {
  std::sort(updates.begin(), updates.end(), [](const Update& a, const Update& b) { return a.state < b.state; });
  return updates;
}

}  // namespace

std::string tape_file::updates_difference(const Graph& captured, const Plan& plan) {
  const std::vector<Update> stored = by_state(plan.graph.updates);
  auto next = stored.begin();
  for (const Update& u : by_state(captured.updates)) {
    if (next != stored.end() && next->state == u.state)
      ++next;
    else if (!may_leave_out(captured, u, plan))
      return fmt::format("the plan does not update %{}", captured.value_name(u.state));
  }
  if (next == stored.end()) return "";
  return fmt::format("the plan updates %{}, and the captured graph does not", captured.value_name(next->state));
}

std::string tape_file::signature_difference(const Graph& captured, const Graph& planned) {
  if (captured.n_inputs != planned.n_inputs) return "another number of inputs";
  if (captured.n_state != planned.n_state) return "another number of state values";
  for (ValueId v = 0; v < captured.n_inputs + captured.n_state; ++v) {
    const Value &a = captured.values[v], &b = planned.values[v];
    if (a.name != b.name || a.type != b.type || a.role != b.role) return fmt::format("%{} differs", captured.value_name(v));
  }
  if (captured.outputs.size() != planned.outputs.size()) return "another number of outputs";
  for (std::size_t i = 0; i < captured.outputs.size(); ++i)
    if (captured.values[captured.outputs[i]].type != planned.values[planned.outputs[i]].type)
      return fmt::format("output {} differs in type", i);
  return "";
}

TapeFile read_tape(Bytes file, const std::string& path, Check check) { return TapeReader(file, path).read(check); }

TapeFile load_tape(const std::string& path, Check check) {
  const FileBytes file(path);
  return read_tape(file.bytes(), path, check);
}

Graph load_graph(const std::string& path) {
  const FileBytes file(path);
  return parse(text_of(file.bytes()), path);
}

}  // namespace tapedeck
