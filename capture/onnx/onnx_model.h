// An ONNX model in memory, without protobuf: what the file says, checked for its form and not yet for its meaning.
#pragma once

#include <tapedeck/kernels/dtype.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tapedeck::onnx {

// The numbers of element types in the format.
enum ElementType : std::int32_t {
  kFloat = 1,
  kUint8 = 2,
  kInt32 = 6,
  kInt64 = 7,
  kString = 8,
  kBool = 9,
  kFloat16 = 10,
  kDouble = 11,
  kBfloat16 = 16,
};
std::optional<DType> dtype_of(std::int64_t element_type);  // none: Tapedeck has no such dtype
std::int32_t element_type_of(DType dtype);
std::string element_type_name(std::int64_t element_type);  // "int8"

// A tensor of the file. Its bytes are dense, row-major and little-endian; those of external data are not read yet.
struct TensorData {
  std::string name;
  std::int64_t element_type = 0;
  std::vector<std::int64_t> sizes;              // none is negative
  std::string bytes;                            // as many as the type has, unless the data is external
  std::map<std::string, std::string> external;  // location, offset, length; empty: the bytes are in the file
  std::string_view borrowed;                    // of a model that is written: bytes of the caller instead of `bytes`
};

struct Graph;

enum class AttributeKind : std::uint8_t { none, real, integer, text, tensor, graph, reals, integers, texts };

struct Attribute {
  AttributeKind kind = AttributeKind::none;
  double real = 0;
  std::int64_t integer = 0;
  std::string text;
  std::shared_ptr<const TensorData> tensor;
  std::shared_ptr<Graph> graph;
  std::vector<double> reals;
  std::vector<std::int64_t> integers;
  std::vector<std::string> texts;
  bool is_given = false;   // a call of a function gave it, so a graph in it reads the values of the caller
  std::string outer_name;  // inside a function: the attribute of the call whose value this one has; empty: its own
};

struct Node {
  std::string name, op, domain, overload;
  std::vector<std::string> inputs, outputs;  // an empty name: not given, or not wanted
  std::map<std::string, Attribute> attributes;
  std::map<std::string, std::string> metadata;
  std::int64_t opset = 0;  // of ONNX itself, where a function has its own; 0: that of the model
};

struct Dimension {
  std::int64_t size = -1;  // -1: not known
  std::string name;        // of a size that the caller chooses; may be empty
};

// An input or output of a graph.
struct ValueInfo {
  std::string name;
  std::int64_t element_type = 0;  // 0: not given
  std::string other_kind = {};    // "sequence", "map", "optional" or "sparse tensor" for what is no tensor
  bool has_shape = false;
  std::vector<Dimension> shape;
};

struct Graph {
  std::string name;
  std::vector<Node> nodes;
  std::vector<TensorData> initializers;
  std::vector<ValueInfo> inputs, outputs;
  // The types that the file states for results of nodes, those of outputs too, by name. Some ops have results whose size only
  // their data decides; the importer then takes it from here.
  std::map<std::string, ValueInfo> values;
};

struct Function {
  std::string name, domain, overload;
  std::vector<std::string> inputs, outputs, attributes;
  std::map<std::string, Attribute> defaults;
  std::vector<Node> nodes;
  std::map<std::string, std::int64_t> opsets;
};

struct Model {
  std::int64_t ir_version = 0;
  std::string producer;                        // "pytorch 2.15.0"
  std::map<std::string, std::int64_t> opsets;  // by domain; that of ONNX itself is ""
  std::map<std::string, std::string> metadata;
  Graph graph;
  std::vector<Function> functions;
};

// Was this build made with protobuf? Without it read_model() throws DeviceError.
bool is_supported();

// Reads a model. Memory: the file's bytes once. Throws FileError for a file that is missing or cannot be read, and ParseError
// for one that is no model.
Model read_model(const std::string& path);
// Writes the model; with `external_data` the bytes of large tensors into PATH.data. Returns how many bytes the files have. The
// tensors of the model lose their bytes. A failure leaves no file behind. Throws FileError if a file cannot be written,
// UsageError for a model of 2 GiB or more in one file, DeviceError without protobuf.
std::int64_t write_model(const std::string& path, Model model, bool external_data);
// The tensor of a file that holds one alone, as the conformance tests of ONNX do.
TensorData read_tensor(const std::string& path);

// Puts the nodes of functions in the place of their calls. Throws ParseError if functions call themselves, if they make more
// than 1,000,000 nodes or copy more than 256 MiB, and if more than 32 graphs are inside each other then.
void inline_functions(Model& model, const std::string& path);

// Makes initializers and operands of the coefficients that linear models of ai.onnx.ml have as attributes. Call it after
// inline_functions().
void lift_coefficients(Model& model);

}  // namespace tapedeck::onnx
