#include <tapedeck/capture/onnx/import_onnx.h>

#include <tapedeck/capture/file/captured_file.h>
#include <tapedeck/capture/onnx/choose_parameters.h>
#include <tapedeck/capture/onnx/interpreter.h>
#include <tapedeck/capture/onnx/training_step.h>
#include <tapedeck/capture/record/capture.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/eager/thread_state.h>
#include <tapedeck/engine/gradient/gradients.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ir/unique_names.h>
#include <tapedeck/engine/nn/optimizer.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <memory>
#include <set>
#include <unordered_set>
#include <utility>

namespace tapedeck {

namespace onnx {

namespace {

// A name that the text of a graph can have: "onnx::MatMul_3" -> "onnx__MatMul_3".
std::string graph_name(const std::string& name) {
  std::string result = name.empty() ? "value" : name;
  for (char& c : result)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_' && c != '.') c = '_';
  if (std::isdigit(static_cast<unsigned char>(result[0])) != 0 || result[0] == '.') result.insert(result.begin(), '_');
  return result.substr(0, 200);
}

// The name by which a caller gives an open size.
std::string name_of_size(const ValueInfo& v, std::size_t i) {
  return v.shape[i].name.empty() ? fmt::format("{}.{}", v.name, i) : v.shape[i].name;
}

class ModelImport {
 public:
  ModelImport(const std::string& path, const OnnxOptions& options) : options_(options), model_(read_model(path)) {
    state_.path = path;
    scope_.graph = &model_.graph;
    state_.trains = options.train;
    inline_functions(model_, path);
    lift_coefficients(model_);
    check_versions();
    take_initializers();
    take_inputs();
  }

  OnnxImport run() {
    const AbstractMode types;
    Interpreter interpreter(model_, state_);
    {
      const NoGrad no_gradients;
      set_initializers();
      for (std::size_t i = 0; i < inputs_.size(); ++i) scope_.values[inputs_[i]->name] = {abstract_tensor(types_[i])};
      interpreter.run(scope_, Interpreter::Pass::find_known);
      require_outputs(interpreter);
    }
    Captured captured = options_.train ? record_step(interpreter) : record_model(interpreter);
    return finish(std::move(captured));
  }

 private:
  // ---- what the file has ----

  void check_versions() {
    const auto it = model_.opsets.find("");
    opset_ = it == model_.opsets.end() ? 0 : it->second;
    if (opset_ == 0 && model_.opsets.count(std::string(kMlDomain)) == 0)
      throw ParseError(state_.path + ": it does not say of which opset it is");
    if (opset_ > kNewestOpset)
      state_.notes.push_back(
          fmt::format("The model is of opset {}; its ops are read as those of opset {}, the newest that was compared.", opset_,
                      kNewestOpset));
  }

  void take_initializers() {
    joined_ = joined_initializers(model_);
    uses_ = choose_parameters(model_, options_.parameters);
    std::unordered_set<std::string> seen;
    UniqueNames names;
    for (TensorData& data : model_.graph.initializers) {
      if (!seen.insert(data.name).second)
        throw ParseError(fmt::format("{}: it has the initializer '{}' twice", state_.path, data.name));
      const Role role = uses_.at(data.name);
      const bool is_state = role != Role::none;
      Weight w;
      w.name = data.name;
      w.role = role;
      w.type = type_of(data);
      if (!is_state || !options_.abstract) w.data = tensor_of(data, state_.path);
      if (!is_state) w.known = known_operand(w.data);
      std::string().swap(data.bytes);  // the bytes are in the tensor now
      if (is_state) w.graph_name = names.unique(graph_name(data.name)).str();
      weights_.push_back(std::move(w));
    }
  }

  Type type_of(const TensorData& data) const {
    const std::optional<DType> dtype = dtype_of(data.element_type);
    if (!dtype || data.sizes.size() > static_cast<std::size_t>(kMaxRank))
      return tensor_of(data, state_.path).type();  // says what is wrong
    return {*dtype, Shape(std::span<const std::int64_t>(data.sizes))};
  }

  // Old files list initializers among the inputs.
  void take_inputs() {
    std::set<std::string> used, open;
    for (const ValueInfo& v : model_.graph.inputs) {
      if (uses_.count(v.name) > 0) continue;
      if (!v.other_kind.empty() || v.element_type == 0)
        throw ParseError(fmt::format("{}: the input '{}' is a {}, and only tensors are supported", state_.path, v.name,
                                     v.other_kind.empty() ? "value without a type" : v.other_kind));
      const std::optional<DType> dtype = dtype_of(v.element_type);
      if (!dtype)
        throw ParseError(fmt::format("{}: the input '{}' has elements of type {}, which are not supported", state_.path, v.name,
                                     element_type_name(v.element_type)));
      if (!v.has_shape) throw ParseError(fmt::format("{}: the input '{}' has no shape", state_.path, v.name));
      Integers sizes;
      if (options_.constants.count(v.name) > 0) {
        fixed_.push_back({v.name, known_operand(constant_input(v, *dtype))});
        continue;
      }
      for (std::size_t i = 0; i < v.shape.size(); ++i) sizes.push_back(size_of(v, i, &used, &open));
      if (sizes.size() > static_cast<std::size_t>(kMaxRank) || (open.empty() && checked_bytes(*dtype, sizes) < 0))
        throw ParseError(fmt::format("{}: the input '{}' is too large", state_.path, v.name));
      inputs_.push_back(&v);
      if (open.empty()) types_.push_back({*dtype, Shape(std::span<const std::int64_t>(sizes))});
    }
    if (!open.empty())
      throw UsageError(fmt::format("{}: the model leaves sizes open: give them, for instance --dims {}=8", state_.path,
                                   fmt::join(open, "=8,")));
    for (const auto& [name, value] : options_.constants)
      if (std::none_of(fixed_.begin(), fixed_.end(), [&, n = name](const auto& f) { return f.first == n; }))
        throw UsageError(fmt::format("{}: there is no input '{}'", state_.path, name));
    for (const auto& [name, size] : options_.dims)
      if (used.count(name) == 0) throw UsageError(fmt::format("{}: no input has an open size '{}'", state_.path, name));
  }

  Tensor constant_input(const ValueInfo& v, DType dtype) const {
    const Tensor& given = options_.constants.at(v.name);
    bool fits =
        given.defined() && !given.abstract() && given.dtype() == dtype && given.rank() == static_cast<int>(v.shape.size());
    for (std::size_t i = 0; fits && i < v.shape.size(); ++i)
      fits = v.shape[i].size < 0 || v.shape[i].size == given.size(static_cast<int>(i));
    if (!fits) throw UsageError(fmt::format("{}: the constant for the input '{}' is of another type", state_.path, v.name));
    return given;
  }

  std::int64_t size_of(const ValueInfo& v, std::size_t i, std::set<std::string>* used, std::set<std::string>* open) const {
    const Dimension& d = v.shape[i];
    if (d.size >= 0) return d.size;
    const std::string by_place = fmt::format("{}.{}", v.name, i);
    for (const std::string& name : {by_place, d.name}) {
      const auto it = options_.dims.find(name);
      if (name.empty() || it == options_.dims.end()) continue;
      used->insert(name);
      if (it->second < 0) throw UsageError(fmt::format("the size '{}' must not be negative", name));
      return it->second;
    }
    open->insert(name_of_size(v, i));
    return 1;
  }

  // ---- running it ----

  // In the first pass and in the second, initializers have tensors of their own: the second ones are those of the capture.
  void set_initializers() {
    parameters_.clear();
    for (const auto& [name, value] : fixed_) scope_.values[name] = value;
    for (Weight& w : weights_) {
      if (w.role == Role::none) {
        scope_.values[w.name] = w.known;
        continue;
      }
      w.recorded = abstract_tensor(w.type);
      w.recorded.name(w.graph_name).role(w.role);
      if (w.role == Role::parameter && options_.train) {
        w.recorded.requires_grad(true);
        parameters_.push_back(w.recorded);
      }
      scope_.values[w.name] = {w.recorded};
    }
  }

  void require_outputs(const Interpreter& interpreter) {
    if (model_.graph.outputs.empty()) throw ParseError(state_.path + ": it has no output");
    for (const ValueInfo& v : model_.graph.outputs) interpreter.value(scope_, v.name);
  }

  std::vector<Tensor> begin(Capture& capture) {
    scope_.values.clear();
    set_initializers();
    std::vector<Tensor> given;
    UniqueNames names;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const Tensor x = capture.input(names.unique(graph_name(inputs_[i]->name)).str(), abstract_tensor(types_[i]));
      scope_.values[inputs_[i]->name] = {x};
      given.push_back(x);
    }
    return given;
  }

  Captured record_model(Interpreter& interpreter) {
    const NoGrad no_gradients;
    Capture capture(graph_name(model_.graph.name));
    const std::vector<Tensor> given = begin(capture);
    const Scoped<Tensor> draws(thread_state().pass_rng, stated_rng());
    interpreter.run(scope_, Interpreter::Pass::record);
    UniqueNames names;
    for (const ValueInfo& v : model_.graph.outputs) {
      const Operand& o = interpreter.value(scope_, v.name);
      capture.output(names.unique(graph_name(v.name)).str(), o.tensor);
    }
    return capture.finish();
  }

  // The random state of a step that Tapedeck wrote, which the step also updates. Without one it is that of the thread.
  Tensor stated_rng() const {
    for (const Weight& w : weights_)
      if (w.role == Role::rng && w.type == Type{DType::i64, {2}}) return w.recorded;
    return {};
  }

  Captured record_step(Interpreter& interpreter) {
    if (options_.loss.empty()) throw UsageError("--train needs a loss: cross_entropy, mse, bce or the name of an output");
    const ValueInfo* own_loss = nullptr;
    for (const ValueInfo& v : model_.graph.outputs)
      if (v.name == options_.loss) own_loss = &v;
    const std::string output = own_loss != nullptr ? own_loss->name : trained_output(interpreter);
    const Tensor found = interpreter.value(scope_, output).tensor;
    const Type target = own_loss != nullptr ? Type() : target_type(options_.loss, found);
    for (const std::string& note : missing_for_training(model_)) state_.notes.push_back(note);
    note_constants();
    next_step();
    Capture capture(graph_name(model_.graph.name));
    begin(capture);
    if (parameters_.empty())
      throw UsageError(state_.path + ": the model has no parameter to train; --as-parameters names some");
    const std::unique_ptr<Optimizer> optimizer = make_optimizer();
    Tensor wanted;
    if (own_loss == nullptr) wanted = capture.input("target", abstract_tensor(target));
    interpreter.run(scope_, Interpreter::Pass::record);
    const Tensor result = interpreter.value(scope_, output).tensor;
    const Tensor loss =
        own_loss != nullptr ? scalar_loss(result) : loss_of(options_.loss, result, wanted, op_of_scores(model_, output));
    if (!loss.requires_grad())
      throw UsageError(fmt::format("{}: no parameter has an effect on the output '{}'", state_.path, output));
    backward(loss);
    optimizer->step();
    optimizer->zero_grad();
    capture.output("loss", loss);
    return capture.finish();
  }

  // The first output of floating numbers: classifiers of scikit-learn give labels before probabilities.
  std::string trained_output(const Interpreter& interpreter) const {
    for (const ValueInfo& v : model_.graph.outputs)
      if (is_floating(interpreter.value(scope_, v.name).tensor.dtype())) return v.name;
    return model_.graph.outputs[0].name;
  }

  // Tensors that an exporter named and whose elements are all equal may be weights that nobody trained yet.
  void note_constants() {
    if (!joined_.empty())
      state_.notes.push_back(
          fmt::format("{} weights have equal elements and are read by several nodes, {} for instance: the exporter has joined "
                      "weights that nobody "
                      "trained yet, and they are trained as one.",
                      joined_.size(), joined_[0]));
    if (!options_.parameters.empty()) return;
    std::vector<std::string> names;
    for (const Weight& w : weights_)
      if (w.role == Role::none && is_floating(w.type.dtype) && w.type.numel() > 1) names.push_back(w.name);
    if (names.empty()) return;
    const std::size_t all = names.size(), shown = std::min<std::size_t>(all, 3);
    names.resize(shown);
    state_.notes.push_back(
        fmt::format("{} floating tensors stay constants, because they look like numbers of formulas: {}{}. "
                    "--as-parameters names other parameters.",
                    all, fmt::join(names, ", "), all > shown ? ", ..." : ""));
  }

  std::unique_ptr<Optimizer> make_optimizer() const {
    const AbstractMode concrete(false);  // the rate has a value
    if (options_.optimizer == "sgd") return std::make_unique<Sgd>(parameters_, SgdOptions{.lr = 0.01});
    if (options_.optimizer == "adamw") return std::make_unique<AdamW>(parameters_, AdamWOptions{.lr = 1e-3});
    throw UsageError("unknown optimizer '" + options_.optimizer + "': sgd or adamw");
  }

  // ---- the result ----

  OnnxImport finish(Captured captured) {
    restore_updates(captured);
    OnnxImport result;
    result.file = tape_of(captured, metadata());
    std::unordered_map<const void*, Weight*> recorded;
    for (Weight& w : weights_)
      if (w.recorded.defined()) recorded[w.recorded.impl()] = &w;
    for (std::size_t i = 0; i < captured.state.size(); ++i) {
      const std::string name = captured.graph.value_name(captured.graph.n_inputs + static_cast<ValueId>(i));
      const Tensor& state = captured.state[i];
      const auto found = recorded.find(state.impl());
      Weight* const w = found == recorded.end() ? nullptr : found->second;
      if (w != nullptr && w->role == Role::parameter) result.parameters.push_back({name, w->name, w->type});
      if (options_.abstract) continue;
      if (w != nullptr)
        result.file.state[name] = std::move(w->data);
      else if (state.abstract())
        result.file.state[name] = zeros_of(state.type());  // the moments of an optimizer before its first step
    }
    for (const Node& node : model_.graph.nodes) ++result.ops[node.op];
    result.opset = opset_;
    result.producer = model_.producer;
    result.notes = std::move(state_.notes);
    return result;
  }

  // A model that Tapedeck wrote says which outputs are the new values of which state: "fc1.weight=fc1.weight.next", one a line.
  void restore_updates(Captured& captured) const {
    const auto stated = model_.metadata.find("tapedeck.updates");
    if (options_.train || stated == model_.metadata.end()) return;
    tapedeck::Graph& graph = captured.graph;
    const std::unordered_map<std::string, ValueId> states = states_of(captured);
    std::unordered_map<std::string, std::size_t> outputs;
    for (std::size_t i = 0; i < model_.graph.outputs.size() && i < graph.outputs.size(); ++i)
      outputs[model_.graph.outputs[i].name] = i;
    std::set<ValueId> updated;
    for (const Update& u : graph.updates) updated.insert(u.state);
    std::vector<bool> goes(graph.outputs.size());
    for (std::size_t at = 0, end = 0; (end = stated->second.find('\n', at)) != std::string::npos; at = end + 1) {
      const std::string line = stated->second.substr(at, end - at);
      const std::size_t equals = line.rfind('=');
      if (equals == std::string::npos) continue;
      const auto state = states.find(line.substr(0, equals));
      const auto output = outputs.find(line.substr(equals + 1));
      if (state == states.end() || output == outputs.end() || goes[output->second]) continue;
      const ValueId value = graph.outputs[output->second];
      const auto type = [&](ValueId v) { return graph.values[static_cast<std::size_t>(v)].type; };
      if (type(state->second) != type(value) || !updated.insert(state->second).second) continue;
      graph.updates.push_back({state->second, value});
      goes[output->second] = true;
    }
    std::size_t kept = 0;
    for (std::size_t i = 0; i < goes.size(); ++i) {
      if (goes[i]) continue;
      graph.outputs[kept] = graph.outputs[i];
      graph.output_names[kept++] = graph.output_names[i];
    }
    graph.outputs.resize(kept);
    graph.output_names.resize(kept);
  }

  // The state values by the names of their initializers.
  std::unordered_map<std::string, ValueId> states_of(const Captured& captured) const {
    std::unordered_map<const void*, ValueId> values;
    for (std::size_t i = 0; i < captured.state.size(); ++i)
      values[captured.state[i].impl()] = captured.graph.n_inputs + static_cast<ValueId>(i);
    std::unordered_map<std::string, ValueId> named;
    for (const Weight& w : weights_)
      if (w.recorded.defined())
        if (const auto it = values.find(w.recorded.impl()); it != values.end()) named[w.name] = it->second;
    return named;
  }

  static Tensor zeros_of(const Type& type) {
    const AbstractMode concrete(false);
    Tensor t = empty(type);
    std::memset(t.mutable_data(), 0, static_cast<std::size_t>(type.bytes()));
    return t;
  }

  std::map<std::string, std::string> metadata() const {
    std::map<std::string, std::string> data = {{"imported_from", "onnx"}, {"opset", std::to_string(opset_)}};
    if (!model_.producer.empty()) data["producer"] = model_.producer;
    if (options_.train) data["optimizer"] = options_.optimizer;
    return data;
  }

  struct Weight {
    std::string name, graph_name;
    Role role = Role::none;
    Type type;
    Tensor data;      // undefined: an abstract import has none
    Operand known;    // of a constant
    Tensor recorded;  // the tensor without data that stands for it in the recording
  };

  const OnnxOptions& options_;
  Model model_;
  ImportState state_;
  std::int64_t opset_ = 0;
  std::unordered_map<std::string, Role> uses_;  // none: a constant
  std::vector<std::string> joined_;             // by the exporter
  std::vector<Weight> weights_;
  std::vector<const ValueInfo*> inputs_;
  std::vector<Type> types_;                             // of the inputs
  std::vector<std::pair<std::string, Operand>> fixed_;  // inputs that are constants
  std::vector<Tensor> parameters_;
  Scope scope_;
};

}  // namespace

}  // namespace onnx

bool has_onnx() { return onnx::is_supported(); }

OnnxFacts onnx_facts(const std::string& path) {
  const onnx::Model model = onnx::read_model(path);
  OnnxFacts facts;
  std::set<std::string> initializers, open;
  for (const onnx::TensorData& data : model.graph.initializers) initializers.insert(data.name);
  for (const onnx::ValueInfo& v : model.graph.inputs) {
    if (initializers.count(v.name) > 0) continue;
    for (std::size_t i = 0; i < v.shape.size(); ++i) {
      const std::string name = onnx::name_of_size(v, i);
      if (v.shape[i].size < 0 && open.insert(name).second) facts.open_sizes.push_back(name);
    }
  }
  for (const onnx::ValueInfo& v : model.graph.outputs) facts.outputs.push_back(v.name);
  return facts;
}

OnnxImport import_onnx(const std::string& path, const OnnxOptions& options) { return onnx::ModelImport(path, options).run(); }

}  // namespace tapedeck
