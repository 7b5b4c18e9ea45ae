// One node of an ONNX graph while its op is imported: operands, attributes, and what is known of both. The functions of the
// table (onnx_ops.h) get one of these and call ops of Tapedeck.
#pragma once

#include <tapedeck/capture/onnx/onnx_model.h>
#include <tapedeck/engine/eager/tensor.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace tapedeck::onnx {

using Tensors = std::vector<Tensor>;
using Integers = std::vector<std::int64_t>;

// The nodes of one model share this while they are imported.
struct ImportState {
  std::string path;                // of the model, for messages
  bool trains = false;             // dropout and batch norm work as in training
  std::vector<std::string> notes;  // what the person should know
  // Amounts that are used up, so that a small file cannot take any amount of memory.
  std::int64_t known_bytes = 0, recurrent_steps = 0, condition_runs = 0;
};

// A value as an operand. One that is known follows from the file and from shapes alone. Its elements can be read in a
// recording, too, where reading those of a tensor would be an error.
struct Operand {
  Tensor tensor;                // undefined: not given
  const void* bytes = nullptr;  // of a known value: its elements, dense, alive as long as the tensor; null: not known
  bool is_known() const { return bytes != nullptr; }
};
// REQUIRES data, and no recording.
Operand known_operand(const Tensor& tensor);
Integers integers_of(const Operand& known);  // REQUIRES a known one
std::vector<double> reals_of(const Operand& known);

class NodeCall {
 public:
  // `graph` is the one that the node stands in.
  NodeCall(ImportState& state, const Graph& graph, const Node& node, std::int64_t opset, std::vector<Operand> operands,
           Site site)
      : state_(state), graph_(graph), node_(node), opset_(opset), operands_(std::move(operands)), site_(site) {}

  std::int64_t opset() const { return opset_; }
  const std::string& model_path() const { return state_.path; }
  bool trains() const { return state_.trains; }
  // Counts the steps of recurrent layers, of which a model has only so many.
  void take_steps(std::int64_t count) const;
  void note(const std::string& text) const;  // once, whatever the number of nodes
  Site site() const { return site_; }

  // ---- operands ----
  std::size_t count() const { return operands_.size(); }
  bool has(std::size_t i) const { return i < operands_.size() && operands_[i].tensor.defined(); }
  const Tensor& operator[](std::size_t i) const;  // ParseError if it is not given
  Arg arg(std::size_t i) const { return arg((*this)[i]); }
  Arg arg(const Tensor& t) const { return {t, site_.file, site_.line}; }  // a call of an op that names this node in errors
  Tensor or_none(std::size_t i) const { return has(i) ? operands_[i].tensor : Tensor(); }
  Tensors all() const;
  bool is_known(std::size_t i) const { return has(i) && operands_[i].is_known(); }
  // The elements of a known operand. ParseError if it is not known, which says so.
  Integers integers(std::size_t i) const;
  std::vector<double> reals(std::size_t i) const;
  std::int64_t integer(std::size_t i) const;  // of the only element
  double real(std::size_t i) const;
  const Operand& known(std::size_t i) const;

  // ---- attributes: the value, or what stands for one that is not given ----
  bool has(std::string_view name) const { return find(name) != nullptr; }
  std::int64_t integer(std::string_view name, std::int64_t otherwise) const;
  std::int64_t integer(std::string_view name) const;  // ParseError if it is not given
  bool flag(std::string_view name, bool otherwise = false) const { return integer(name, otherwise ? 1 : 0) != 0; }
  double real(std::string_view name, double otherwise) const;
  std::string text(std::string_view name, const std::string& otherwise) const;
  Integers integers(std::string_view name, const Integers& otherwise = {}) const;
  std::vector<double> reals(std::string_view name, const std::vector<double>& otherwise = {}) const;
  std::vector<std::string> texts(std::string_view name, const std::vector<std::string>& otherwise = {}) const;
  const TensorData* tensor(std::string_view name) const;  // null: not given
  // Newer versions of an op take this as an operand, and older ones as an attribute.
  Integers integers(std::size_t i, std::string_view name, const Integers& otherwise = {}) const;

  // ---- results ----
  std::size_t results() const { return node_.outputs.size(); }
  bool wants(std::size_t i) const { return i < node_.outputs.size() && !node_.outputs[i].empty(); }
  // A size that the model states for this result, as a tensor of that rank; -1: it states none.
  std::int64_t stated_size(std::size_t i, std::size_t axis, std::size_t rank) const;

  // ---- checks ----
  // An axis that may be negative, as an index of a tensor of this rank.
  std::int64_t axis(std::int64_t given, std::int64_t rank) const;
  DType dtype(std::int64_t element_type) const;  // ParseError for types that Tapedeck does not have
  Shape shape(const Integers& sizes) const;      // ParseError for negative sizes and too many of them
  Ints list(const Integers& values) const;       // ParseError if there are too many
  void require(bool holds, const std::string& message) const {
    if (!holds) fail(message);
  }
  [[noreturn]] void fail(const std::string& message) const;

 private:
  const Attribute* find(std::string_view name) const;
  const Attribute* find(std::string_view name, AttributeKind kind, const char* kind_name) const;

  ImportState& state_;
  const Graph& graph_;
  const Node& node_;
  std::int64_t opset_;
  std::vector<Operand> operands_;
  Site site_;
};

// A tensor with data from host values, also where the thread computes types only.
Tensor known_integers(const Integers& values);  // i64, one dimension
Tensor known_tensor(const Type& type, const void* bytes);
// The tensor of the data of a file, or of a file beside it. ParseError for a dtype that Tapedeck does not have.
Tensor tensor_of(const TensorData& data, const std::string& path);
// The same with elements that can be read in a recording. REQUIRES that `data` outlives the operand.
Operand file_operand(const TensorData& data, const std::string& path);

std::string describe(const Node& node);  // "node '/conv1/Conv' (Conv)"

}  // namespace tapedeck::onnx
