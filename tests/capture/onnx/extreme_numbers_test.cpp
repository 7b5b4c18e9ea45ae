// The numbers of a model may be any numbers: its attributes, and the elements of constants that decide sizes and places. The
// models are the tests that ONNX has for each of its ops. An import of a changed one is an error or a graph, never a crash.
#include <tapedeck/tests/capture/onnx/onnx_data.h>
#include <tapedeck/tests/capture/temporary_folder.h>
#include <tapedeck/tests/engine/seeds.h>

#include <tapedeck/engine/ir/error.h>

#include <array>
#include <functional>
#include <limits>
#include <optional>
#include <random>
#include <set>

namespace tapedeck {
namespace {

constexpr std::array<std::int64_t, 10> kExtremeIntegers = {std::numeric_limits<std::int64_t>::min(),
                                                           std::numeric_limits<std::int64_t>::max(),
                                                           -1,
                                                           0,
                                                           3,
                                                           1000,
                                                           std::int64_t{1} << 31,
                                                           -(std::int64_t{1} << 31),
                                                           std::int64_t{1} << 40,
                                                           std::int64_t{1} << 62};
constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
constexpr std::array<float, 10> kExtremeReals = {0.0F, -1.0F, 0.3F, 1e-30F, 1e30F, -1e30F, 1e12F, kInfinity, -kInfinity, kNan};

// A model of one node. Its operands of integers, and those of a few real numbers, are constants, by their names.
struct NodeModel {
  onnx::Model model;
  std::map<std::string, Tensor> constants;
  std::map<std::string, std::int64_t> dims;
};

// Empty where the folder has no model, or one with tensors that Tapedeck cannot read.
std::optional<NodeModel> read_node(const std::filesystem::path& folder) {
  try {
    NodeModel read;
    read.model = onnx::read_model((folder / "model.onnx").string());
    const std::vector<Tensor> inputs = read_pbs((folder / "test_data_set_0").string(), "input_");
    for (std::size_t i = 0; i < inputs.size() && i < read.model.graph.inputs.size(); ++i) {
      const onnx::ValueInfo& v = read.model.graph.inputs[i];
      const DType dtype = inputs[i].dtype();
      if (dtype == DType::i64 || (dtype == DType::f32 && inputs[i].numel() <= 8)) read.constants[v.name] = inputs[i];
      for (std::size_t d = 0; d < v.shape.size(); ++d)
        if (v.shape[d].size < 0 && read.constants.count(v.name) == 0)
          read.dims[v.name + "." + std::to_string(d)] = inputs[i].size(static_cast<int>(d));
    }
    return read;
  } catch (const Error&) {
    return std::nullopt;
  }
}

// The tensor with another element at a place.
template <class Element>
Tensor with_element(const Tensor& t, std::int64_t place, Element value) {
  std::vector<Element> elements = t.to_vector<Element>();
  elements[static_cast<std::size_t>(place)] = value;
  return from_bytes(t.type(), elements.data());
}

// The numbers of a model, one after the other: its attributes, and the first elements of its constants. Each can be replaced.
class Numbers {
 public:
  explicit Numbers(NodeModel* m) {
    for (onnx::Node& node : m->model.graph.nodes)
      for (auto& [name, attribute] : node.attributes) add(&attribute);
    for (auto& [name, tensor] : m->constants)
      for (std::int64_t i = 0; i < std::min<std::int64_t>(tensor.numel(), 8); ++i) add(&tensor, i);
  }
  std::size_t count() const { return replace_.size(); }
  // Replaces number `place` by an extreme one, which it returns as text.
  std::string replace(std::size_t place, std::mt19937& random) { return replace_[place](random); }

 private:
  static std::int64_t integer(std::mt19937& random) { return kExtremeIntegers[random() % kExtremeIntegers.size()]; }
  static float real(std::mt19937& random) { return kExtremeReals[random() % kExtremeReals.size()]; }

  void add(onnx::Attribute* a) {
    if (a->kind == onnx::AttributeKind::integer)
      replace_.push_back([a](std::mt19937& random) { return std::to_string(a->integer = integer(random)); });
    if (a->kind == onnx::AttributeKind::real)
      replace_.push_back([a](std::mt19937& random) { return std::to_string(a->real = static_cast<double>(real(random))); });
    for (std::int64_t& each : a->integers)
      replace_.push_back([&each](std::mt19937& random) { return std::to_string(each = integer(random)); });
  }
  void add(Tensor* t, std::int64_t place) {
    replace_.push_back([t, place](std::mt19937& random) {
      const bool whole = t->dtype() == DType::i64;
      const std::int64_t i = integer(random);
      const float r = real(random);
      *t = whole ? with_element(*t, place, i) : with_element(*t, place, r);
      return whole ? std::to_string(i) : std::to_string(r);
    });
  }

  std::vector<std::function<std::string(std::mt19937&)>> replace_;
};

class ExtremeNumbers : public ::testing::Test {
 protected:
  // Imports the model with one or two of its numbers replaced. The seed makes the same change again.
  void import_changed(const NodeModel& original, const std::string& name, std::uint32_t seed) {
    NodeModel changed = original;
    Numbers numbers(&changed);
    std::mt19937 random(seed);
    std::string text = name + ", seed " + std::to_string(seed) + ":";
    const std::uint32_t count = 1 + random() % 2;
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::size_t place = random() % numbers.count();
      text += " number " + std::to_string(place) + " is " + numbers.replace(place, random);
    }
    const std::string path = folder_.file("m.onnx");
    const OnnxOptions options = {.dims = changed.dims, .constants = changed.constants, .abstract = true};
    try {
      onnx::write_model(path, std::move(changed.model), false);
      import_onnx(path, options);
      ++imported_;
    } catch (const Error&) {
      ++refused_;
    } catch (const std::exception& e) {
      ADD_FAILURE() << text << ": " << e.what();
    }
    std::filesystem::remove(path);  // some file systems wait for the disk when a file is written over
  }
  TemporaryFolder folder_;
  int imported_ = 0, refused_ = 0;
};

TEST_F(ExtremeNumbers, AreErrorsOrImports) {
  if (!has_onnx()) GTEST_SKIP() << "this build has no support for ONNX";
  const std::filesystem::path all = onnx_conformance_tests() + "/node";
  if (!std::filesystem::exists(all)) GTEST_SKIP() << "no tests of ONNX in " << all;
  constexpr std::uint32_t kSeed = 20261128;
  const auto rounds = static_cast<std::uint32_t>(test::seeds(8));
  std::set<std::filesystem::path> folders;
  for (const std::filesystem::directory_entry& entry : std::filesystem::directory_iterator(all)) folders.insert(entry.path());
  for (const std::filesystem::path& folder : folders) {
    std::optional<NodeModel> node = read_node(folder);
    if (!node || Numbers(&*node).count() == 0) continue;
    for (std::uint32_t round = 0; round < rounds; ++round)
      import_changed(*node, folder.filename().string(), kSeed + 1000 * round);
  }
  std::printf("%d models are imported, %d are refused\n", imported_, refused_);
  EXPECT_GT(imported_, 20);
  EXPECT_GT(refused_, 20);
}

}  // namespace
}  // namespace tapedeck
