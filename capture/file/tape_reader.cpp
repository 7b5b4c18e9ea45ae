// Bytes -> TapeFile. Nothing is used before it is checked: container, format version, header checksum, the checksums of the
// parts that are read, op versions, then the contents against each other. Every part is read once, into the memory where it
// stays, and is checked there: the bytes that were checked are the bytes that are used, even if the file changes meanwhile.
#include <tapedeck/capture/file/tape_file.h>

#include <tapedeck/capture/file/foreign_file.h>
#include <tapedeck/capture/formats/input_file.h>
#include <tapedeck/capture/formats/json.h>
#include <tapedeck/capture/formats/safetensors.h>
#include <tapedeck/engine/eager/tensor_impl.h>
#include <tapedeck/engine/text/text.h>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <unordered_map>

namespace tapedeck {
namespace {

using namespace tape_file;

Bytes bytes_of(const Tensor& tensor) {
  return {static_cast<const unsigned char*>(tensor.impl()->data()), static_cast<std::size_t>(tensor.bytes())};
}

Bytes bytes_of(std::string_view text) { return {reinterpret_cast<const unsigned char*>(text.data()), text.size()}; }

std::shared_ptr<unsigned char> aligned_bytes(std::uint64_t size) {
  constexpr std::align_val_t alignment{kAlignment};
  void* bytes = ::operator new(static_cast<std::size_t>(std::max<std::uint64_t>(size, 1)), alignment);
  return {static_cast<unsigned char*>(bytes), [](unsigned char* p) { ::operator delete (p, std::align_val_t{kAlignment}); }};
}

// A file that cannot be a safetensors file, because its header would be longer than the file, is told by its kind.
void check_is_no_foreign_file(const ByteSource& source) {
  std::string begin(std::min<std::uint64_t>(source.size(), kForeignBytes), '\0');
  source.read(0, {reinterpret_cast<unsigned char*>(begin.data()), begin.size()});
  std::uint64_t header = 0;
  constexpr std::size_t kLength = sizeof header;
  if (begin.size() > kLength) {
    std::memcpy(&header, begin.data(), kLength);
    if (header <= source.size() - kLength || begin[kLength] == '{') return;
  }
  if (const std::string kind = foreign_kind(begin); !kind.empty())
    throw FileError(fmt::format("{}: not a tape, but {}", source.path(), kind));
}

Safetensors read_header(const ByteSource& source) {
  check_is_no_foreign_file(source);
  return read_safetensors(source);
}

class TapeReader {
 public:
  TapeReader(const ByteSource& source, Check check)
      : source_(source), path_(source.path()), check_(check), file_(read_header(source)) {}

  TapeFile read() {
    check_format();
    check_header();
    if (!file_.skipped.empty())
      fail(fmt::format("tensor {} is {}, a dtype that no tape holds", shown(file_.skipped[0].name),
                       to_string(file_.skipped[0])));
    for (const TensorPlace& t : file_.tensors) read_part(t);
    source_.check_unchanged();
    check_op_versions();

    TapeFile tape;
    const std::string* graph = find_text(kGraph);
    if (!graph) fail(fmt::format("there is no {} inside", kGraph));
    tape.captured = parse_graph(kGraph, *graph);
    check_ops_listed(tape.captured);
    read_plan(tape);
    read_profile(tape);
    take_tensors(tape);
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
    const std::string_view text = file_.length_and_header;
    if (text.size() < kDigitsAt + kDigits || text.substr(8, kHeaderStart.size()) != kHeaderStart)
      fail("the header does not begin with its checksum: damaged, or written by another program");
    if (parse_checksum(text.substr(kDigitsAt, kDigits)) != header_checksum(bytes_of(text)))
      fail("the header is damaged (wrong checksum)");
  }

  void check_sum(const TensorPlace& t, std::uint64_t found) const {
    const std::string* sum = metadata(std::string(kChecksum) + t.name);
    if (!sum) fail(fmt::format("tensor {} has no checksum", shown(t.name)));
    if (parse_checksum(*sum) != found) fail(fmt::format("tensor {} is damaged (wrong checksum)", shown(t.name)));
  }

  // Into the memory where it stays. Text is checked even where tensors are not.
  void read_part(const TensorPlace& t) {
    if (t.name == kGraph || t.name == kPlannedGraph || t.name == kPlan || t.name == kProfile)
      read_text(t);
    else if (t.name.starts_with(kConstant))
      read_constant(t);
    else if (t.name.starts_with(kState) || t.name.starts_with(kInput))
      check_bytes(t, bytes_of(tensors_[&t] = read_tensor(source_, t)));
    else if (check_ == Check::all)
      check_unused(t);
  }

  void read_text(const TensorPlace& t) {
    if (t.type.dtype != DType::u8 || t.type.shape.rank != 1)
      fail(fmt::format("{} is {}, and should be text in u8", t.name, to_string(t.type)));
    std::string text(t.size(), '\0');
    source_.read(t.begin, {reinterpret_cast<unsigned char*>(text.data()), text.size()});
    check_sum(t, checksum(bytes_of(text)));
    texts_[t.name] = std::move(text);
  }

  void read_constant(const TensorPlace& t) {
    const std::shared_ptr<unsigned char> data = aligned_bytes(t.size());
    const std::span<unsigned char> bytes(data.get(), t.size());
    source_.read(t.begin, bytes);
    check_bytes(t, bytes);
    check_bools(t.type, bytes, t.name, path_);
    const std::string name = t.name.substr(kConstant.size());
    constants_[name] = {t.type, data, Name(name)};
  }

  void check_bytes(const TensorPlace& t, Bytes bytes) const {
    if (check_ == Check::all) check_sum(t, checksum(bytes));
  }

  // Padding, and tensors that a later version may have written.
  void check_unused(const TensorPlace& t) const {
    if (!t.name.starts_with(kPad))
      check_sum(t, checksum(source_, t.begin, t.size()));
    else if (!all_zero(source_, t.begin, t.size()))
      fail("padding is not zero: damaged");
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

  const std::string* find_text(std::string_view name) const {
    const auto it = texts_.find(name);
    return it == texts_.end() ? nullptr : &it->second;
  }

  Graph parse_graph(std::string_view name, const std::string& text) {
    const TensorLookup lookup = [&](const std::string& constant, Literal* literal) { return find_constant(constant, literal); };
    return parse(text, fmt::format("{}:{}", path_, name), lookup);
  }

  // Both graphs share the data. A constant that the file lacks stays abstract, as state and inputs do.
  bool find_constant(const std::string& name, Literal* literal) const {
    if (const auto it = constants_.find(name); it != constants_.end()) *literal = it->second;
    return true;
  }

  void read_plan(TapeFile& tape) {
    const std::string *plan = find_text(kPlan), *graph = find_text(kPlannedGraph);
    if (!plan && !graph) return;
    if (!plan || !graph) fail("a plan needs both planned_graph and plan, and only one is inside");
    Graph planned = parse_graph(kPlannedGraph, *graph);
    check_ops_listed(planned);
    const std::string difference = signature_difference(tape.captured, planned);
    if (!difference.empty()) fail("the planned graph is not the captured one's: " + difference);
    try {
      tape.plan = parse_plan(*plan, std::move(planned));
    } catch (const InvalidGraphError& e) {
      fail(e.what());
    }
    const std::string updates = updates_difference(tape.captured, *tape.plan);
    if (!updates.empty()) fail("the plan is not the captured graph's: " + updates);
  }

  // Names that no node has are no error: passes of a later version may name nodes otherwise.
  void read_profile(TapeFile& tape) {
    const std::string* profile = find_text(kProfile);
    if (!profile) return;
    try {
      tape.profile = parse_profile(*profile);
    } catch (const FileError& e) {
      fail(e.what());
    }
  }

  // Tensors of names the graph does not know are left alone: a later version may have written them.
  void take_tensors(TapeFile& tape) const {
    std::unordered_map<std::string_view, const Value*> state, inputs;
    const Graph& g = tape.captured;
    for (ValueId v = 0; v < g.n_inputs + g.n_state; ++v)
      (g.is_input(v) ? inputs : state)[g.values[v].name.view()] = &g.values[v];
    for (const auto& [place, tensor] : tensors_) {
      if (place->name.starts_with(kState)) take_known(*place, tensor, kState, state, tape.state);
      if (place->name.starts_with(kInput)) take_known(*place, tensor, kInput, inputs, tape.inputs);
    }
  }

  void take_known(const TensorPlace& t, const Tensor& tensor, std::string_view prefix,
                  const std::unordered_map<std::string_view, const Value*>& known,
                  std::map<std::string, Tensor>& tensors) const {
    const std::string name = t.name.substr(prefix.size());
    const auto it = known.find(name);
    if (it == known.end()) return;
    if (it->second->type != t.type)
      fail(fmt::format("{} is {}, the graph says {}", shown(t.name), to_string(t.type), to_string(it->second->type)));
    tensors.emplace(name, tensor);
  }

  const ByteSource& source_;
  const std::string& path_;
  const Check check_;
  const Safetensors file_;
  std::map<std::string, std::string, std::less<>> texts_;
  std::map<std::string, Literal> constants_;
  std::map<const TensorPlace*, Tensor> tensors_;
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

TapeFile read_tape(Bytes file, const std::string& path, Check check) {
  return TapeReader(MemorySource(file, path), check).read();
}

TapeFile load_tape(const std::string& path, Check check) {
  const InputFile file(path);
  return TapeReader(file, check).read();
}

Graph load_graph(const std::string& path) { return parse(read_text_file(path), path); }

}  // namespace tapedeck
