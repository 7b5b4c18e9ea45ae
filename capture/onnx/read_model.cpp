// Beside write_model.cpp the only file that uses protobuf. It copies the parsed message into the structures of onnx_model.h and
// frees each part of the message as soon as it is copied, so that the bytes of weights exist once.
#include <tapedeck/capture/onnx/onnx_model.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ir/type.h>

#include <fmt/format.h>

#ifdef TAPEDECK_HAS_ONNX
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <onnx.pb.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <deque>
#include <limits>
#include <utility>
#endif

namespace tapedeck::onnx {

#ifndef TAPEDECK_HAS_ONNX

bool is_supported() { return false; }

namespace {
[[noreturn]] void refuse() {
  throw DeviceError(
      "this build has no support for ONNX: protobuf (libprotobuf-dev and protobuf-compiler) was not found when it "
      "was configured");
}
}  // namespace

Model read_model(const std::string&) { refuse(); }
TensorData read_tensor(const std::string&) { refuse(); }

#else

static_assert(std::endian::native == std::endian::little, "the bytes of tensors are taken as they are");

bool is_supported() { return true; }

namespace {

namespace format = tapedeck::onnx_format;

[[noreturn]] void fail(const std::string& path, const std::string& message) { throw ParseError(path + ": " + message); }

constexpr int kMostNested = 100;  // messages inside messages: graphs inside attributes of nodes of graphs

class File {
 public:
  explicit File(const std::string& path) : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    struct stat about {};
    if (fd_ >= 0 && fstat(fd_, &about) == 0 && S_ISDIR(about.st_mode)) {
      close(fd_);
      throw FileError(path + ": it is a folder");
    }
    if (fd_ < 0) throw FileError(fmt::format("{}: cannot open it: {}", path, std::strerror(errno)));
    bytes_ = S_ISREG(about.st_mode) ? about.st_size : -1;
  }
  ~File() { close(fd_); }
  File(const File&) = delete;
  int fd() const { return fd_; }
  std::int64_t bytes() const { return bytes_; }

 private:
  int fd_;
  std::int64_t bytes_ = 0;
};

template <class Message>
void parse(const std::string& path, Message& message) {
  const File file(path);
  if (file.bytes() > std::numeric_limits<int>::max())
    fail(path, "a file of 2 GiB or more is no ONNX model: such models keep their weights in files beside them");
  google::protobuf::io::FileInputStream stream(file.fd());
  google::protobuf::io::CodedInputStream coded(&stream);
  coded.SetTotalBytesLimit(std::numeric_limits<int>::max());
  coded.SetRecursionLimit(kMostNested);
  if (!message.ParseFromCodedStream(&coded) || !coded.ConsumedEntireMessage())
    fail(path, "it is no ONNX model, or it is damaged or cut off");
  if (stream.GetErrno() != 0) throw FileError(fmt::format("{}: cannot read it: {}", path, std::strerror(stream.GetErrno())));
}

// ---- tensors ----

// The elements of a typed field as bytes. Fields of int32 hold narrower types, too.
template <class Element, class Field>
std::string bytes_of(const Field& field) {
  std::string bytes(static_cast<std::size_t>(field.size()) * sizeof(Element), '\0');
  for (int i = 0; i < field.size(); ++i) {
    const auto element = static_cast<Element>(field.Get(i));
    std::memcpy(bytes.data() + static_cast<std::size_t>(i) * sizeof(Element), &element, sizeof(Element));
  }
  return bytes;
}

std::string typed_bytes(const format::TensorProto& from) {
  switch (from.data_type()) {
    case kFloat:
      return bytes_of<float>(from.float_data());
    case kDouble:
      return bytes_of<double>(from.double_data());
    case kInt32:
      return bytes_of<std::int32_t>(from.int32_data());
    case kInt64:
      return bytes_of<std::int64_t>(from.int64_data());
    case kFloat16:
    case kBfloat16:
      return bytes_of<std::uint16_t>(from.int32_data());
    case kUint8:
    case kBool:
      return bytes_of<std::uint8_t>(from.int32_data());
    default:
      return {};
  }
}

std::string place_of(const format::TensorProto& t) {
  return t.name().empty() ? "a tensor without a name" : "tensor '" + t.name() + "'";
}

// The tensor keeps nothing of its data.
TensorData take_tensor(format::TensorProto& from, const std::string& path) {
  TensorData to;
  to.name = from.name();
  to.element_type = from.data_type();
  to.sizes.assign(from.dims().begin(), from.dims().end());
  for (std::int64_t size : to.sizes)
    if (size < 0) fail(path, fmt::format("{} has the negative size {}", place_of(from), size));
  const std::optional<DType> dtype = dtype_of(to.element_type);
  if (!dtype) return to;  // the importer refuses it where it is used
  const std::int64_t wanted = checked_bytes(*dtype, to.sizes);
  if (wanted < 0) fail(path, place_of(from) + " is too large");
  if (from.data_location() == 1) {
    for (const format::StringStringEntryProto& entry : from.external_data()) to.external[entry.key()] = entry.value();
    if (!to.external.count("location")) fail(path, place_of(from) + " has external data without a location");
    return to;
  }
  if (from.has_raw_data()) {
    to.bytes = std::move(*from.mutable_raw_data());
  } else {
    to.bytes = typed_bytes(from);
  }
  from.Clear();
  if (static_cast<std::int64_t>(to.bytes.size()) != wanted)
    fail(path, fmt::format("tensor '{}' has {} bytes instead of {}", to.name, to.bytes.size(), wanted));
  if (*dtype == DType::boolean)
    for (char& c : to.bytes) c = c != 0;
  return to;
}

// ---- graphs ----

// 1e-5 is written as a float, which is 9.99999974e-06 as a double. The author wrote the shortest decimal that gives the
// float.
double as_written(float value) {
  if (!std::isfinite(value)) return static_cast<double>(value);
  std::array<char, 32> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
  double result = static_cast<double>(value);
  if (error == std::errc()) std::from_chars(text.data(), end, result);
  return result;
}

// Copies graphs without recursion: graphs that attributes hold wait in a list.
class Copier {
 public:
  explicit Copier(const std::string& path) : path_(path) {}

  void copy(format::GraphProto& from, Graph& to) {
    waiting_.push_back({&from, &to});
    drain();
  }
  void copy(format::FunctionProto& from, Function& to) {
    to.name = from.name();
    to.domain = from.domain();
    to.overload = from.overload();
    to.inputs.assign(from.input().begin(), from.input().end());
    to.outputs.assign(from.output().begin(), from.output().end());
    to.attributes.assign(from.attribute().begin(), from.attribute().end());
    for (format::AttributeProto& a : *from.mutable_attribute_proto()) to.defaults[a.name()] = attribute(a);
    for (format::NodeProto& n : *from.mutable_node()) to.nodes.push_back(node(n));
    for (const format::OperatorSetIdProto& set : from.opset_import())
      to.opsets[set.domain() == "ai.onnx" ? "" : set.domain()] = set.version();
    drain();
  }

 private:
  void drain() {
    while (!waiting_.empty()) {
      const auto [from, to] = waiting_.front();
      waiting_.pop_front();
      graph(*from, *to);
    }
  }

  void graph(format::GraphProto& from, Graph& to) {
    if (from.sparse_initializer_size() > 0) fail(path_, "sparse tensors are not supported");
    to.name = from.name();
    to.nodes.reserve(static_cast<std::size_t>(from.node_size()));
    for (format::NodeProto& n : *from.mutable_node()) to.nodes.push_back(node(n));
    for (format::TensorProto& t : *from.mutable_initializer()) to.initializers.push_back(take_tensor(t, path_));
    for (const format::ValueInfoProto& v : from.input()) to.inputs.push_back(value(v));
    for (const format::ValueInfoProto& v : from.output()) to.outputs.push_back(value(v));
    for (const format::ValueInfoProto& v : from.value_info()) to.values[v.name()] = value(v);
    for (const ValueInfo& v : to.outputs) to.values[v.name] = v;
  }

  Node node(format::NodeProto& from) {
    Node to;
    to.name = from.name();
    to.op = from.op_type();
    to.domain = from.domain() == "ai.onnx" ? "" : from.domain();
    to.overload = from.overload();
    to.inputs.assign(from.input().begin(), from.input().end());
    to.outputs.assign(from.output().begin(), from.output().end());
    for (format::AttributeProto& a : *from.mutable_attribute())
      if (!to.attributes.emplace(a.name(), attribute(a)).second)
        fail(path_, fmt::format("node '{}' ({}) has the attribute '{}' twice", to.name, to.op, a.name()));
    for (const format::StringStringEntryProto& entry : from.metadata_props()) to.metadata[entry.key()] = entry.value();
    return to;
  }

  static ValueInfo value(const format::ValueInfoProto& from) {
    ValueInfo to;
    to.name = from.name();
    const format::TypeProto& type = from.type();
    switch (type.value_case()) {
      case format::TypeProto::kSequenceType:
        to.other_kind = "sequence";
        break;
      case format::TypeProto::kMapType:
        to.other_kind = "map";
        break;
      case format::TypeProto::kOptionalType:
        to.other_kind = "optional";
        break;
      case format::TypeProto::kSparseTensorType:
        to.other_kind = "sparse tensor";
        break;
      default:
        break;
    }
    if (!type.has_tensor_type()) return to;
    to.element_type = type.tensor_type().elem_type();
    to.has_shape = type.tensor_type().has_shape();
    for (const format::TensorShapeProto::Dimension& d : type.tensor_type().shape().dim())
      to.shape.push_back({d.has_dim_value() ? d.dim_value() : -1, d.dim_param()});
    return to;
  }

  Attribute attribute(format::AttributeProto& from) {
    Attribute to;
    to.outer_name = from.ref_attr_name();
    constexpr std::array<AttributeKind, 9> kinds = {AttributeKind::none,  AttributeKind::real,     AttributeKind::integer,
                                                    AttributeKind::text,  AttributeKind::tensor,   AttributeKind::graph,
                                                    AttributeKind::reals, AttributeKind::integers, AttributeKind::texts};
    const int type = from.type() != 0 ? from.type() : guessed_type(from);
    if (type < 0 || type >= static_cast<int>(kinds.size()))
      fail(path_, fmt::format("the attribute '{}' is of a type that is not supported (number {})", from.name(), type));
    to.kind = kinds[static_cast<std::size_t>(type)];
    to.real = as_written(from.f());
    to.integer = from.i();
    to.text = from.s();
    for (float f : from.floats()) to.reals.push_back(as_written(f));
    to.integers.assign(from.ints().begin(), from.ints().end());
    to.texts.assign(from.strings().begin(), from.strings().end());
    if (to.kind == AttributeKind::tensor) to.tensor = std::make_shared<TensorData>(take_tensor(*from.mutable_t(), path_));
    if (to.kind == AttributeKind::graph) {
      to.graph = std::make_shared<Graph>();
      waiting_.push_back({from.mutable_g(), to.graph.get()});
    }
    return to;
  }

  // Files of the first versions of the format do not state the type.
  static int guessed_type(const format::AttributeProto& a) {
    if (a.has_f()) return 1;
    if (a.has_i()) return 2;
    if (a.has_s()) return 3;
    if (a.has_t()) return 4;
    if (a.has_g()) return 5;
    if (a.floats_size() > 0) return 6;
    if (a.ints_size() > 0) return 7;
    return a.strings_size() > 0 ? 8 : 0;
  }

  const std::string& path_;
  std::deque<std::pair<format::GraphProto*, Graph*> > waiting_;
};

}  // namespace

Model read_model(const std::string& path) {
  format::ModelProto from;
  parse(path, from);
  if (!from.has_graph()) fail(path, "it is no ONNX model: it has no graph");
  Model model;
  model.ir_version = from.ir_version();
  model.producer = from.producer_name() + (from.producer_version().empty() ? "" : " " + from.producer_version());
  for (const format::OperatorSetIdProto& set : from.opset_import())
    model.opsets[set.domain() == "ai.onnx" ? "" : set.domain()] = set.version();
  for (const format::StringStringEntryProto& entry : from.metadata_props()) model.metadata[entry.key()] = entry.value();
  if (!model.opsets.count("") && model.ir_version < 3) model.opsets[""] = 1;
  Copier copier(path);
  copier.copy(*from.mutable_graph(), model.graph);
  for (format::FunctionProto& f : *from.mutable_functions()) copier.copy(f, model.functions.emplace_back());
  return model;
}

TensorData read_tensor(const std::string& path) {
  format::TensorProto from;
  parse(path, from);
  return take_tensor(from, path);
}

#endif

}  // namespace tapedeck::onnx
