// Beside read_model.cpp the only file that uses protobuf: it writes the structures of onnx_model.h. The bytes of tensors move
// into the message, so that they exist once, and the message goes to the file as it is encoded.
#include <tapedeck/capture/onnx/onnx_model.h>

#include <tapedeck/capture/formats/atomic_write.h>
#include <tapedeck/engine/ir/error.h>

#include <fmt/format.h>

#ifdef TAPEDECK_HAS_ONNX
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <onnx.pb.h>

#include <filesystem>
#include <limits>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>
#endif

namespace tapedeck::onnx {

#ifndef TAPEDECK_HAS_ONNX

std::int64_t write_model(const std::string&, Model, bool) {
  throw DeviceError(
      "this build has no support for ONNX: protobuf (libprotobuf-dev and protobuf-compiler) was not found when it "
      "was configured");
}

#else

namespace {

namespace format = tapedeck::onnx_format;

constexpr std::size_t kLeastExternal = 1024;  // bytes of a tensor that goes into the file beside the model
constexpr std::int64_t kAlignment = 64;

class ToWriter : public google::protobuf::io::CopyingOutputStream {
 public:
  explicit ToWriter(AtomicWriter& writer) : writer_(writer) {}
  bool Write(const void* buffer, int size) override {
    writer_.write(std::string_view(static_cast<const char*>(buffer), static_cast<std::size_t>(size)));
    return true;
  }

 private:
  AtomicWriter& writer_;
};

// The file beside the model.
class DataFile {
 public:
  explicit DataFile(const std::string& model_path)
      : name_(std::filesystem::path(model_path).filename().string() + ".data"), writer_(model_path + ".data") {}
  void take(std::string_view bytes, format::TensorProto& to) {
    writer_.write(std::string(static_cast<std::size_t>((kAlignment - bytes_ % kAlignment) % kAlignment), '\0'));
    bytes_ += (kAlignment - bytes_ % kAlignment) % kAlignment;
    to.set_data_location(1);
    add(to, "location", name_);
    add(to, "offset", std::to_string(bytes_));
    add(to, "length", std::to_string(bytes.size()));
    writer_.write(bytes);
    bytes_ += static_cast<std::int64_t>(bytes.size());
  }
  std::int64_t bytes() const { return bytes_; }
  void commit() { writer_.commit(); }

 private:
  static void add(format::TensorProto& to, const char* key, const std::string& value) {
    format::StringStringEntryProto* entry = to.add_external_data();
    entry->set_key(key);
    entry->set_value(value);
  }

  std::string name_;
  AtomicWriter writer_;
  std::int64_t bytes_ = 0;
};

void give_tensor(TensorData from, DataFile* data, format::TensorProto& to) {
  to.set_name(from.name);
  to.set_data_type(static_cast<std::int32_t>(from.element_type));
  for (const std::int64_t size : from.sizes) to.add_dims(size);
  const std::string_view bytes = from.borrowed.empty() ? from.bytes : from.borrowed;
  if (data != nullptr && bytes.size() >= kLeastExternal)
    data->take(bytes, to);
  else if (from.borrowed.empty())
    to.set_raw_data(std::move(from.bytes));
  else
    to.set_raw_data(bytes.data(), bytes.size());
}

// Writes graphs without recursion: graphs that attributes hold wait in a list.
class GraphWriter {
 public:
  explicit GraphWriter(DataFile* data) : data_(data) {}
  void write(Graph& from, format::GraphProto& to) {
    waiting_ = {{&from, &to}};
    while (!waiting_.empty()) {
      const auto [graph, message] = waiting_.back();
      waiting_.pop_back();
      give_graph(*graph, *message);
    }
  }

 private:
  void give_graph(Graph& from, format::GraphProto& to);
  void give_node(const Node& from, format::NodeProto& to);
  void give_attribute(const std::string& name, const Attribute& from, format::AttributeProto& to);

  DataFile* data_;
  std::vector<std::pair<Graph*, format::GraphProto*> > waiting_;
};

void GraphWriter::give_attribute(const std::string& name, const Attribute& from, format::AttributeProto& to) {
  to.set_name(name);
  to.set_type(static_cast<std::int32_t>(from.kind));
  switch (from.kind) {
    case AttributeKind::real:
      return to.set_f(static_cast<float>(from.real));
    case AttributeKind::integer:
      return to.set_i(from.integer);
    case AttributeKind::text:
      return to.set_s(from.text);
    case AttributeKind::tensor:
      return give_tensor(*from.tensor, nullptr, *to.mutable_t());
    case AttributeKind::reals:
      for (const double v : from.reals) to.add_floats(static_cast<float>(v));
      return;
    case AttributeKind::integers:
      for (const std::int64_t v : from.integers) to.add_ints(v);
      return;
    case AttributeKind::texts:
      for (const std::string& v : from.texts) to.add_strings(v);
      return;
    case AttributeKind::graph:
      waiting_.emplace_back(from.graph.get(), to.mutable_g());
      return;
    case AttributeKind::none:
      throw UsageError(fmt::format("the attribute '{}' is of a kind that is not written", name));
  }
}

template <class Message>
void give_metadata(const std::map<std::string, std::string>& from, Message& to) {
  for (const auto& [key, value] : from) {
    format::StringStringEntryProto* entry = to.add_metadata_props();
    entry->set_key(key);
    entry->set_value(value);
  }
}

void GraphWriter::give_node(const Node& from, format::NodeProto& to) {
  to.set_name(from.name);
  to.set_op_type(from.op);
  if (!from.domain.empty()) to.set_domain(from.domain);
  for (const std::string& name : from.inputs) to.add_input(name);
  for (const std::string& name : from.outputs) to.add_output(name);
  for (const auto& [name, attribute] : from.attributes) give_attribute(name, attribute, *to.add_attribute());
  give_metadata(from.metadata, to);
}

void give_value(const ValueInfo& from, format::ValueInfoProto& to) {
  to.set_name(from.name);
  format::TypeProto::Tensor* type = to.mutable_type()->mutable_tensor_type();
  type->set_elem_type(static_cast<std::int32_t>(from.element_type));
  type->mutable_shape();
  for (const Dimension& d : from.shape) {
    format::TensorShapeProto::Dimension* dim = type->mutable_shape()->add_dim();
    if (d.size >= 0)
      dim->set_dim_value(d.size);
    else
      dim->set_dim_param(d.name);
  }
}

void GraphWriter::give_graph(Graph& from, format::GraphProto& to) {
  to.set_name(from.name);
  for (const Node& node : from.nodes) give_node(node, *to.add_node());
  for (TensorData& t : from.initializers) give_tensor(std::move(t), data_, *to.add_initializer());
  for (const ValueInfo& v : from.inputs) give_value(v, *to.add_input());
  for (const ValueInfo& v : from.outputs) give_value(v, *to.add_output());
  for (const auto& [name, v] : from.values) give_value(v, *to.add_value_info());
}

format::ModelProto message_of(Model& model, DataFile* data) {
  format::ModelProto to;
  to.set_ir_version(model.ir_version);
  to.set_producer_name(model.producer);
  for (const auto& [domain, version] : model.opsets) {
    format::OperatorSetIdProto* set = to.add_opset_import();
    set->set_domain(domain);
    set->set_version(version);
  }
  give_metadata(model.metadata, to);
  GraphWriter(data).write(model.graph, *to.mutable_graph());
  return to;
}

// The file beside the model first: a model must not name a file that is not there. If the model then cannot take its place, a
// new file beside it goes.
void commit(const std::string& path, AtomicWriter& writer, DataFile* data) {
  const bool is_new = data != nullptr && !std::filesystem::exists(path + ".data");
  if (data != nullptr) data->commit();
  try {
    writer.commit();
  } catch (...) {
    std::error_code ignored;
    if (is_new) std::filesystem::remove(path + ".data", ignored);
    throw;
  }
}

}  // namespace

namespace {

// Protobuf has no messages of 2 GiB or more.
void require_one_file(const std::string& path, std::int64_t bytes) {
  if (bytes <= std::numeric_limits<int>::max()) return;
  throw UsageError(
      fmt::format("{}: a model of {} bytes is too large for one file: write its tensors into a file beside it, with "
                  "--external-data or OnnxExportOptions::external_data",
                  path, bytes));
}

std::int64_t bytes_of_initializers(const Model& model) {
  std::int64_t bytes = 0;
  for (const TensorData& t : model.graph.initializers) bytes += static_cast<std::int64_t>(t.bytes.size() + t.borrowed.size());
  return bytes;
}

}  // namespace

std::int64_t write_model(const std::string& path, Model model, bool external_data) {
  if (!external_data) require_one_file(path, bytes_of_initializers(model));
  AtomicWriter writer(path);
  std::optional<DataFile> data;
  if (external_data) data.emplace(path);
  const format::ModelProto message = message_of(model, data ? &*data : nullptr);
  const auto bytes = static_cast<std::int64_t>(message.ByteSizeLong());
  require_one_file(path, bytes);
  ToWriter to(writer);
  {
    google::protobuf::io::CopyingOutputStreamAdaptor stream(&to);
    if (!message.SerializeToZeroCopyStream(&stream) || !stream.Flush()) throw FileError(path + ": cannot write it");
  }
  commit(path, writer, data ? &*data : nullptr);
  return bytes + (data ? data->bytes() : 0);
}

#endif

}  // namespace tapedeck::onnx
