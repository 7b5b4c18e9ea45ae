// Compares ops with PyTorch: results and gradients, in f64 and f32, run eagerly and replayed. The cases are in
// pytorch/cases.txt. What PyTorch gives for them is in pytorch/expected.txt, which pytorch/make_expected.py makes.
// engine/ops/PYTORCH.md lists the differences on purpose; a case that shows one must differ.
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/record/capture.h>
#include <tapedeck/capture/replay/executor.h>
#include <tapedeck/engine/gradient/gradients.h>
#include <tapedeck/engine/ops/ops.h>

#include <tapedeck/tests/agree/pytorch_functions.h>
#include <tapedeck/tests/engine/all_ops.h>

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <set>
#include <sstream>
#include <stdexcept>
#include <tuple>

namespace tapedeck::testing {
namespace {

// ---- expected.txt ----

struct Numbers {
  std::string type;  // of a result, such as "f64[2,3]"; "?" for what is not compared
  std::vector<double> values;
};

// What PyTorch gives for one dtype.
struct Expected {
  std::vector<std::string> dtypes;  // "f64", "f32"; the types below are those of the first
  std::vector<Numbers> results, gradients;
};

struct Case {
  std::string text;
  double tolerance = 1;
  bool differs = false, any_zero = false;
  std::vector<Numbers> operands;
  std::vector<Expected> runs;

  std::string name() const { return text.substr(0, text.find('(')); }
};

struct File {
  std::string fingerprint, first_line;
  std::vector<std::pair<std::string, std::vector<Case>>> families;
};

Numbers numbers_of(std::istringstream& line, bool typed) {
  Numbers n;
  if (typed) line >> n.type;
  for (std::string word; line >> word;) {
    if (word == "?") n.type = word;
    n.values.push_back(std::strtod(word.c_str(), nullptr));
  }
  return n;
}

void read_line(const std::string& text, File* file) {
  std::istringstream line(text);
  std::string kind;
  line >> kind;
  if (kind == "cases") line >> file->fingerprint;
  if (kind == "family") file->families.push_back({text.substr(7), {}});
  if (file->families.empty()) return;
  std::vector<Case>& cases = file->families.back().second;
  if (kind == "case") cases.push_back({text.substr(5), 1, false, false, {}, {}});
  if (kind == "tol") line >> cases.back().tolerance;
  if (kind == "differs") cases.back().differs = true;
  if (kind == "any") cases.back().any_zero = true;
  if (kind == "x") cases.back().operands.push_back(numbers_of(line, false));
  if (kind == "as") cases.back().runs.emplace_back();
  if (kind == "as")
    for (std::string dtype; line >> dtype;) cases.back().runs.back().dtypes.push_back(dtype);
  if (kind == "y") cases.back().runs.back().results.push_back(numbers_of(line, true));
  if (kind == "dx") cases.back().runs.back().gradients.push_back(numbers_of(line, false));
}

const char* const kFolder = TAPEDECK_SOURCE_DIR "/tests/agree/pytorch/";

const File& file() {
  static const File read = [] {
    File f;
    std::ifstream stream(std::string(kFolder) + "expected.txt");
    for (std::string line; std::getline(stream, line);) read_line(line, &f);
    return f;
  }();
  return read;
}

// ---- tensors ----

template <class T>
Tensor tensor_of(const Type& type, const std::vector<double>& values) {
  std::vector<T> elements(values.size() + 1);  // so that data() is not null
  for (std::size_t i = 0; i < values.size(); ++i) elements[i] = static_cast<T>(values[i]);
  return from_bytes(type, elements.data());
}

Tensor tensor_of(const Type& type, const std::vector<double>& values) {
  if (type.numel() != static_cast<std::int64_t>(values.size())) throw std::runtime_error("operand has another size");
  switch (type.dtype) {
    case DType::f32:
      return tensor_of<float>(type, values);
    case DType::f64:
      return tensor_of<double>(type, values);
    case DType::i32:
      return tensor_of<std::int32_t>(type, values);
    case DType::i64:
      return tensor_of<std::int64_t>(type, values);
    default:
      return tensor_of<unsigned char>(type, values);
  }
}

// The gradient of result k, as head() in make_expected.py gives it.
Tensor head(std::size_t k, const Type& type) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < type.numel(); ++i)
    values.push_back(static_cast<double>((i * 7 + static_cast<std::int64_t>(k) * 3) % 11 + 1) / 4 * (i % 2 ? -1 : 1));
  return tensor_of(type, values);
}

// ---- running a case ----

using Tensors = std::vector<Tensor>;
using Function = std::function<Tensors(const Tensors& xs)>;

std::string with_dtype(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) text.replace(at, from.size(), to);
  return text;
}

struct Call {
  Function function;
  bool has_gradient = true;
  Tensors operands;
};

// The op or the function of authors of this name, with attributes as in an example.
std::pair<Function, bool> function_of(const std::string& name, const std::string& text, std::vector<Type>* operands) {
  const AuthorFunction* author = name.starts_with("fn.") ? find_author_function(name.substr(3)) : nullptr;
  const Op* op = author ? author->attributes_of ? find_op(author->attributes_of) : &ops::alias : find_op(name);
  if (!op) throw std::runtime_error("no op or function of this name");
  const auto example = std::make_shared<Example>(parse_example(*op, text));
  *operands = example->types();
  if (author) return {[=](const Tensors& xs) { return author->call(xs, example->attrs()); }, true};
  return {[example](const Tensors& xs) { return run(*example, xs); }, !op->is(kNoGradient)};
}

Call call_of(const Case& c, const std::string& dtype) {
  const std::string text = with_dtype(c.text, "f32", dtype);
  std::vector<Type> types;
  Call call;
  std::tie(call.function, call.has_gradient) = function_of(text.substr(0, text.find('(')), text, &types);
  for (std::size_t i = 0; i < types.size(); ++i) call.operands.push_back(tensor_of(types[i], c.operands.at(i).values));
  return call;
}

struct Outcome {
  Tensors results, gradients;  // a gradient for every floating operand, or none
  Tensors all() const {
    Tensors both = results;
    both.insert(both.end(), gradients.begin(), gradients.end());
    return both;
  }
};

Tensors gradients_of(const Call& call, const Tensors& xs, const Tensors& results) {
  Tensors wrt, targets, found;
  GradientOptions options;
  for (const Tensor& x : xs)
    if (is_floating(x.dtype())) wrt.push_back(x);
  for (std::size_t k = 0; k < results.size(); ++k) {
    if (!is_floating(results[k].dtype())) continue;
    targets.push_back(results[k]);
    options.heads.push_back(head(k, results[k].type()));
  }
  if (call.has_gradient && !targets.empty()) found = gradients(targets, wrt, options);
  found.resize(wrt.size());
  for (std::size_t i = 0; i < wrt.size(); ++i)
    if (!found[i].defined()) found[i] = zeros(wrt[i].shape(), wrt[i].dtype());
  return found;
}

// Runs the call eagerly inside a capture, then replays what was recorded. Both must give the same bits.
Outcome outcome_of_call(const Call& call, bool with_gradients) {
  Outcome eager;
  Capture capture("case");
  Tensors xs;
  for (std::size_t i = 0; i < call.operands.size(); ++i) {
    Tensor x = call.operands[i];
    if (with_gradients && is_floating(x.dtype())) x.requires_grad(true);
    xs.push_back(capture.input("x" + std::to_string(i), x));
  }
  eager.results = call.function(xs);
  if (with_gradients) eager.gradients = gradients_of(call, xs, eager.results);
  const Tensors all = eager.all();
  for (std::size_t i = 0; i < all.size(); ++i) capture.output("y" + std::to_string(i), all[i]);
  const Captured captured = capture.finish();
  Executor executor(make_plan(captured.graph));
  for (std::size_t i = 0; i < xs.size(); ++i) executor.set_input(static_cast<int>(i), call.operands[i]);
  expect_equal_bits(executor.run_and_outputs(), all, "replayed");
  return eager;
}

// ---- comparing ----

// |got - expected| <= absolute + relative |expected|
struct Tolerance {
  double relative, absolute;
  bool any_zero;  // -0 is as good as 0
};
Tolerance tolerance_of(DType dtype, double factor, bool any_zero) {
  if (dtype == DType::f64) return {1e-12 * factor, 1e-13 * factor, any_zero};
  if (dtype == DType::f32) return {2e-6 * factor, 1e-6 * factor, any_zero};
  return {0, 0, any_zero};
}

bool close(double got, double expected, const Tolerance& t) {
  if (got == 0 && expected == 0) return t.any_zero || std::signbit(got) == std::signbit(expected);
  if (std::isnan(expected) || std::isinf(expected)) return std::isnan(expected) ? std::isnan(got) : got == expected;
  return std::abs(got - expected) <= t.absolute + t.relative * std::abs(expected);
}

// The elements of all operands at place i, if they have as many elements.
std::string operands_at(const Case& c, std::size_t i, std::size_t size) {
  std::vector<double> all;
  for (const Numbers& x : c.operands) {
    if (x.values.size() != size) return "";
    all.push_back(x.values[i]);
  }
  return fmt::format(" of {}", fmt::join(all, ", "));
}

std::string difference_from_pytorch(const Case& c, const Tensor& got, const std::string& what,
                                    const std::vector<double>& expected, bool any_zero) {
  const std::vector<double> values = elements(got);
  if (values.size() != expected.size())
    return fmt::format("  {} has {} elements, not {}\n", what, values.size(), expected.size());
  const Tolerance tolerance = tolerance_of(got.dtype(), c.tolerance, any_zero);
  std::string all;
  int count = 0;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!close(values[i], expected[i], tolerance) && ++count <= 8)
      all += fmt::format("  {}, element {}{}: {}, PyTorch gives {}\n", what, i, operands_at(c, i, values.size()), values[i],
                         expected[i]);
  return all;
}

std::string difference_from_pytorch(const Case& c, const Outcome& got, const Expected& expected, const std::string& dtype) {
  std::string all;
  if (got.results.size() < expected.results.size())
    all += fmt::format("  {} results, PyTorch gives {}\n", got.results.size(), expected.results.size());
  for (std::size_t k = 0; k < got.results.size(); ++k) {
    const Numbers want = k < expected.results.size() ? expected.results[k] : Numbers{"?", {}};
    if (want.type == "?") continue;
    const std::string type = to_string(got.results[k].type()), what = fmt::format("result {} ({})", k, type);
    if (with_dtype(want.type, expected.dtypes[0], dtype) != type) all += fmt::format("  {} is not {}\n", what, want.type);
    all += difference_from_pytorch(c, got.results[k], what, want.values, c.any_zero);
  }
  for (std::size_t i = 0; i < expected.gradients.size(); ++i)
    if (expected.gradients[i].type != "?")
      all += difference_from_pytorch(c, got.gradients.at(i), fmt::format("gradient {}", i), expected.gradients[i].values, true);
  return all;
}

void check_case(const Case& c) {
  for (const Expected& expected : c.runs)
    for (const std::string& dtype : expected.dtypes) {
      const Outcome got = outcome_of_call(call_of(c, dtype), !expected.gradients.empty());
      const std::string found = difference_from_pytorch(c, got, expected, dtype);
      if (found.empty() && c.differs)
        ADD_FAILURE() << "as " << dtype << ": no difference. Does engine/ops/PYTORCH.md still hold?";
      if (!found.empty() && !c.differs) ADD_FAILURE() << "as " << dtype << ":\n" << found;
    }
}

bool chosen(const Case& c) {
  const char* only = std::getenv("TAPEDECK_TEST_OP");
  return !only || c.name() == only;
}

// ---- the tests ----

class PyTorch : public ::testing::TestWithParam<std::size_t> {};

TEST_P(PyTorch, GivesTheSame) {
  for (const Case& c : file().families[GetParam()].second) {
    if (!chosen(c)) continue;
    SCOPED_TRACE(c.text + "   rerun with TAPEDECK_TEST_OP=" + c.name());
    try {
      check_case(c);
    } catch (const std::exception& error) {
      if (!c.differs) ADD_FAILURE() << "throws " << error.what();
    }
  }
}

std::string name_of_family(const ::testing::TestParamInfo<std::size_t>& info) {
  return with_dtype(file().families[info.param].first, " ", "_");
}

INSTANTIATE_TEST_SUITE_P(Families, PyTorch, ::testing::Range(std::size_t{0}, file().families.size()), name_of_family);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(PyTorch);

// A new op needs a case, or a place in the list of the ops that PyTorch does not have.
TEST(PyTorchCases, ThereIsOneForEveryOp) {
  std::set<std::string> known;
  for (const auto& family : file().families)
    for (const Case& c : family.second) known.insert(c.name());
  std::ifstream page(TAPEDECK_SOURCE_DIR "/engine/ops/PYTORCH.md");
  std::string line, list;
  while (std::getline(page, line) && line != "## Without a counterpart") continue;
  while (std::getline(page, line)) list += line;
  for (const Op* op : chosen_ops())
    EXPECT_TRUE(known.contains(op->name) || list.find(fmt::format("`{}`", op->name)) != std::string::npos)
        << op->name << " has no case in tests/agree/pytorch/cases.txt, and engine/ops/PYTORCH.md does not list it";
}

// FNV-1a of 64 bits, as make_expected.py computes it.
TEST(PyTorchCases, AreThoseOfTheExpectedFile) {
  std::ifstream stream(std::string(kFolder) + "cases.txt", std::ios::binary);
  std::uint64_t h = 0xCBF29CE484222325;
  for (char c = 0; stream.get(c);) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  EXPECT_EQ(file().fingerprint, fmt::format("{:016x}", h)) << "run tests/agree/pytorch/make_expected.py";
  EXPECT_GT(file().families.size(), 0u);
}

}  // namespace
}  // namespace tapedeck::testing
