// Measures kernels one by one: nanoseconds per element, and the percent of the time that the hardware needs at least.
//
//   kernel_bench [--rounds N] [--bytes N] [NAME...]
//
// The least time of a kernel is that of its bytes at the speed of a plain copy, or that of one exp per element, whichever is
// longer. Both are measured in the same run, at the same sizes, in turn with the kernel: the copy is the kernel `neg`, which
// reads and writes every element once, and the exp is the kernel `exp` on elements in the nearest cache. A kernel whose row
// says `copy` has no exponential to compute. The bytes of a kernel are those of its operands and results, each counted once.
//
// Every kernel runs on one thread, at a size that stays in the second cache (256 KiB) and at one that does not fit in any
// (64 MiB). Times are CPU times of the thread, because machines are shared. A NAME selects the rows that contain it.
//
// Products, convolutions and attention run at the sizes of models, and are measured in multiplications and additions per
// nanosecond (GF/s), in f32 and in bf16 by turns. `a'` and `b'` say that a factor lies in the memory with its columns one
// behind the other, as in a backward pass.
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/engine/text/example.h>
#include <tapedeck/kernels/half.h>

#include <fmt/format.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

namespace {

using namespace tapedeck;

enum class Limit { copy, exp };

struct Case {
  const char* text;  // an example of the op; R stands for as many rows as the size allows
  Limit limit;
};

const Case kCases[] = {
    {"softmax(f32[R,1024]) {axis=1}", Limit::exp},
    {"softmax(f32[R,32,64]) {axis=1}", Limit::exp},
    {"softmax_grad(f32[R,1024], f32[R,1024]) {axis=1}", Limit::copy},
    {"softmax_grad(f32[R,32,64], f32[R,32,64]) {axis=1}", Limit::copy},
    {"log_softmax(f32[R,1024]) {axis=1}", Limit::exp},
    {"log_softmax(f32[R,32,64]) {axis=1}", Limit::exp},
    {"log_softmax_grad(f32[R,1024], f32[R,1024]) {axis=1}", Limit::exp},
    {"log_softmax_grad(f32[R,32,64], f32[R,32,64]) {axis=1}", Limit::exp},
    {"cross_entropy(f32[R,4096], i32[R] in (0,4096))", Limit::exp},
    {"cross_entropy(f32[R,10], i32[R] in (0,10))", Limit::exp},
    {"cross_entropy(f32[R,32,64], i32[R,64] in (0,32))", Limit::exp},
    {"cross_entropy(f32[R,4096], i32[R] in (0,4096)) {label_smoothing=0.1}", Limit::exp},
    {"cross_entropy_grad(f32[R,4096], i32[R] in (0,4096), f32[])", Limit::exp},
    {"cross_entropy_grad(f32[R,10], i32[R] in (0,10), f32[])", Limit::exp},
    {"cross_entropy_grad(f32[R,32,64], i32[R,64] in (0,32), f32[])", Limit::exp},
    {"cross_entropy_grad(f32[R,4096], i32[R] in (0,4096), f32[]) {label_smoothing=0.1}", Limit::exp},
    {"nll_loss_grad(i32[R] in (0,1024), f32[]) {classes=1024}", Limit::copy},
    {"nll_loss_grad(i32[R,64] in (0,32), f32[]) {classes=32}", Limit::copy},
    {"huber(f32[R,1024])", Limit::copy},
    {"binary_cross_entropy(f32[R,1024] in (0,1), f32[R,1024] in (0,1))", Limit::exp},
    {"binary_cross_entropy_with_logits(f32[R,1024], f32[R,1024] in (0,1))", Limit::exp},
    {"kl_div(f32[R,1024], f32[R,1024] in (0.1,1))", Limit::exp},
    {"kl_div(f32[R,1024], f32[R,1024]) {log_target=true}", Limit::exp},
    {"argmax(f32[R,1024]) {axis=1}", Limit::copy},
    {"argmax(f32[R,32,64]) {axis=1}", Limit::copy},
    {"argmin(f32[R,256]) {axis=0}", Limit::copy},
    {"argmax(i32[R,1024] in (0,100000)) {axis=1}", Limit::copy},
    {"argmax(f64[R,1024]) {axis=1}", Limit::copy},
    {"cumsum(f32[R,1024]) {axis=1}", Limit::copy},
    {"cumsum(f32[R,1024]) {axis=1, reverse=true}", Limit::copy},
    {"cumsum(f32[R,256]) {axis=0}", Limit::copy},
    {"cumsum(i64[R,1024]) {axis=1}", Limit::copy},
    {"cumprod(f32[R,1024] in (0.9,1.1)) {axis=1}", Limit::copy},
    {"cumprod(f32[R,256] in (0.9,1.1)) {axis=0}", Limit::copy},
    {"cummax(f32[R,1024]) {axis=1}", Limit::copy},
    {"cummax(f32[R,256]) {axis=0}", Limit::copy},
    {"logcumsumexp(f32[R,1024]) {axis=1}", Limit::exp},
    {"sort(f32[R,32]) {axis=1}", Limit::copy},
    {"sort(f32[R,1024]) {axis=1}", Limit::copy},
    {"argsort(f32[R,4096]) {axis=1}", Limit::copy},
    {"argsort(i32[R,4096] in (0,1000000)) {axis=1}", Limit::copy},
    {"topk(f32[R,4096]) {k=8, axis=1}", Limit::copy},
    {"topk(f32[R,4096]) {k=512, axis=1}", Limit::copy},
    {"exp2(f32[R,1024])", Limit::exp},
    {"expm1(f32[R,1024])", Limit::exp},
    {"log(f32[R,1024] in (0.1,4))", Limit::exp},
    {"log2(f32[R,1024] in (0.1,4))", Limit::exp},
    {"log10(f32[R,1024] in (0.1,4))", Limit::exp},
    {"log1p(f32[R,1024] in (0.1,4))", Limit::exp},
    {"sin(f32[R,1024] in (-20,20))", Limit::exp},
    {"cos(f32[R,1024] in (-20,20))", Limit::exp},
    {"tan(f32[R,1024] in (-20,20))", Limit::exp},
    {"asin(f32[R,1024] in (-1,1))", Limit::exp},
    {"acos(f32[R,1024] in (-1,1))", Limit::exp},
    {"atan(f32[R,1024])", Limit::exp},
    {"atan2(f32[R,1024], f32[R,1024])", Limit::exp},
    {"sinh(f32[R,1024])", Limit::exp},
    {"cosh(f32[R,1024])", Limit::exp},
    {"tanh(f32[R,1024])", Limit::exp},
    {"asinh(f32[R,1024])", Limit::exp},
    {"acosh(f32[R,1024] in (1,4))", Limit::exp},
    {"atanh(f32[R,1024] in (-0.9,0.9))", Limit::exp},
    {"erf(f32[R,1024])", Limit::exp},
    {"erfc(f32[R,1024])", Limit::exp},
    {"erfinv(f32[R,1024] in (-0.99,0.99))", Limit::exp},
    {"lgamma(f32[R,1024] in (0.5,20))", Limit::exp},
    {"digamma(f32[R,1024] in (0.5,20))", Limit::exp},
    {"polygamma(f32[R,1024] in (0.5,20)) {n=1}", Limit::exp},
    {"pow(f32[R,1024] in (0.1,4), f32[R,1024])", Limit::exp},
    {"hypot(f32[R,1024], f32[R,1024])", Limit::copy},
    {"logaddexp(f32[R,1024], f32[R,1024])", Limit::exp},
    {"remainder(f32[R,1024], f32[R,1024] in (0.5,2))", Limit::copy},
    {"sgd(f32[R,1024], f32[R,1024], f32[] in (0.01,0.1)) {weight_decay=0.1}", Limit::copy},
    {"sgd_momentum(f32[R,1024], f32[R,1024], f32[R,1024], f32[] in (0.01,0.1)) {momentum=0.9}", Limit::copy},
    {"adamw(f32[R,1024], f32[R,1024], f32[R,1024], f32[R,1024] in (0,1), i64[] in (1,9), f32[] in (0.01,0.1))", Limit::copy},
    {"adam(f32[R,1024], f32[R,1024], f32[R,1024], f32[R,1024] in (0,1), i64[] in (1,9), f32[] in (0.01,0.1))", Limit::copy},
    {"rmsprop(f32[R,1024], f32[R,1024], f32[R,1024] in (0,1), f32[] in (0.01,0.1))", Limit::copy},
    {"adagrad(f32[R,1024], f32[R,1024], f32[R,1024] in (0,1), i64[] in (1,9), f32[] in (0.01,0.1))", Limit::copy},
    {"lion(f32[R,1024], f32[R,1024], f32[R,1024], f32[] in (0.01,0.1)) {weight_decay=0.1}", Limit::copy},
};

// A kernel that multiplies. Every `real` is f32 or bf16.
struct Product {
  const char* text;
  const char* turned = "";  // the factors that are turned
};

const Product kProducts[] = {
    {"matmul(real[20,650], real[650,2600])"},
    {"matmul(real[20,2600], real[2600,650])", "b'"},
    {"matmul(real[650,20], real[20,2600])", "a'"},
    {"linear(real[700,650], real[650,2600], real[2600])"},
    {"linear(real[700,650], real[650,10000])", "b'"},
    {"linear(real[1024,256], real[256,1024], real[1024])"},
    {"matmul(real[1024,1024], real[1024,256])", "b'"},
    {"matmul(real[256,1024], real[1024,1024])", "a'"},
    {"linear(real[1024,768], real[768,3072], real[3072])"},
    {"matmul(real[1024,3072], real[3072,768])", "b'"},
    {"matmul(real[768,1024], real[1024,3072])", "a'"},
    {"linear(real[1,1024], real[1024,1024])"},
    {"linear(real[1,1024], real[1024,1024])", "b'"},
    {"matmul(real[64,64,64], real[64,64,64])"},
    {"scaled_dot_product_attention(real[8,4,128,64], real[8,4,128,64], real[8,4,128,64]) {scale=0.125, causal=true}"},
    {"scaled_dot_product_attention(real[8,4,197,64], real[8,4,197,64], real[8,4,197,64]) {scale=0.125}"},
    {"scaled_dot_product_attention_grad(real[8,4,128,64], real[8,4,128,64], real[8,4,128,64], real[8,4,128,64], f32[8,4,128] "
     "in "
     "(5,6), real[8,4,128,64], f32[8,4,128]) {scale=0.125, causal=true}"},
    {"conv2d(real[8,64,56,56], real[64,64,3,3]) {padding=[1]}"},
    {"conv2d(real[8,256,14,14], real[256,256,3,3]) {padding=[1]}"},
    {"conv2d(real[8,3,224,224], real[64,3,7,7]) {stride=[2], padding=[3]}"},
    {"conv2d_input_grad(real[8,64,56,56], real[64,64,3,3]) {size=[56,56], padding=[1]}"},
    {"conv2d_weight_grad(real[8,64,56,56], real[8,64,56,56]) {size=[3,3], padding=[1]}"},
    {"conv2d_weight_grad(real[8,256,14,14], real[8,256,14,14]) {size=[3,3], padding=[1]}"},
    {"conv2d(real[8,96,112,112], real[96,1,3,3]) {padding=[1], groups=96}"},
};

double cpu_ns() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

// ---- a kernel with its operands ----

// Memory aligned as the engine aligns it.
std::unique_ptr<char, decltype(&std::free)> block(std::int64_t bytes) {
  const std::size_t size = (static_cast<std::size_t>(bytes) + 128) / 64 * 64;
  char* memory = static_cast<char*>(std::aligned_alloc(64, size));
  std::fill(memory, memory + size, char{});
  return {memory, &std::free};
}

std::int64_t bytes_of(const std::vector<Type>& types) {
  std::int64_t bytes = 0;
  for (const Type& t : types) bytes += t.numel() * static_cast<std::int64_t>(dtype_size(t.dtype));
  return bytes;
}

// Elements drawn from the operand's range. They do not repeat, so that no branch predictor learns them.
template <class T>
void fill(T* to, const ExampleOperand& o, std::uint64_t seed) {
  std::uint64_t state = seed * 0x9E3779B97F4A7C15u + 1;
  for (std::int64_t i = 0; i < o.type.numel(); ++i) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    const double x = o.low + (o.high - o.low) * (static_cast<double>(state >> 11) * 0x1p-53);
    to[i] = static_cast<T>(std::is_integral_v<T> ? std::floor(x) : x);
  }
}

class Work {
 public:
  // The op on as many rows as give about `bytes` bytes of operands and results.
  Work(const std::string& text, std::int64_t bytes) : example_(sized(text, bytes)), outputs_(results(example_)) {
    std::uint64_t seed = 1;
    for (const ExampleOperand& o : example_.operands) add_operand(o, seed++);
    for (const Type& t : outputs_) views_.push_back(view_of(t));
    const std::int64_t scratch = workspace_bytes(*example_.op, example_.types(), outputs_, example_.attrs());
    memory_.push_back(block(scratch));
    call_.workspace = scratch > 0 ? memory_.back().get() : nullptr;
    call_.workspace_bytes = static_cast<std::size_t>(scratch);
    call_.inputs = views_.data();
    call_.outputs = views_.data() + example_.operands.size();
    call_.n_inputs = static_cast<std::int32_t>(example_.operands.size());
    call_.n_outputs = static_cast<std::int32_t>(outputs_.size());
    call_.attrs = example_.attrs();
    call_.fault = &fault_;
    if (takes_its_types()) runs_ = std::max(1, static_cast<int>(2e5 / run_ns(1)));
  }

  // Nanoseconds of one run: the mean over about 0.2 ms.
  double run_ns() { return run_ns(runs_); }

  std::int64_t bytes() const { return bytes_of(example_.types()) + bytes_of(outputs_); }
  // The elements of the largest operand or result.
  std::int64_t elements() const {
    std::int64_t most = 0;
    for (const Type& t : example_.types()) most = std::max(most, t.numel());
    for (const Type& t : outputs_) most = std::max(most, t.numel());
    return most;
  }
  const char* fault() const { return fault_.what; }
  bool takes_its_types() const { return !runs_in_f32(*example_.op, example_.types(), outputs_); }
  double flops() const { return example_.op->cost ? example_.op->cost(example_.types(), outputs_, example_.attrs()).flops : 0; }
  // Turns operand i around: its last two dimensions trade places in the memory.
  void turn(int i) {
    View& v = views_[static_cast<std::size_t>(i)];
    std::swap(v.strides[v.rank - 1], v.strides[v.rank - 2]);
    v.strides[v.rank - 1] = v.sizes[v.rank - 2], v.strides[v.rank - 2] = 1;
  }

 private:
  double run_ns(int runs) {
    tbb::task_arena one_thread(1);
    return one_thread.execute([&] {
      const double start = cpu_ns();
      for (int i = 0; i < runs; ++i) example_.op->kernels[0](call_);
      return (cpu_ns() - start) / runs;
    });
  }

  static std::vector<Type> results(const ParsedExample& e) {
    std::vector<Type> outputs;
    infer_types(*e.op, e.types(), e.attrs(), outputs);
    return outputs;
  }
  static ParsedExample with_rows(std::string text, std::int64_t rows) {
    const Op& op = *find_op(text.substr(0, text.find('(')));
    for (std::size_t at; (at = text.find("[R")) != std::string::npos;) text.replace(at + 1, 1, std::to_string(rows));
    return parse_example(op, text);
  }
  static ParsedExample sized(const std::string& text, std::int64_t bytes) {
    const ParsedExample one = with_rows(text, 1);
    return with_rows(text, std::max<std::int64_t>(1, bytes / (bytes_of(one.types()) + bytes_of(results(one)))));
  }

  View view_of(const Type& type) {
    memory_.push_back(block(bytes_of({type})));
    View v;
    v.data = memory_.back().get();
    v.dtype = type.dtype;
    v.rank = type.shape.rank;
    std::int64_t stride = 1;
    for (int d = v.rank - 1; d >= 0; --d) {
      v.sizes[d] = type.shape[d];
      v.strides[d] = stride;
      stride *= type.shape[d];
    }
    return v;
  }
  void add_operand(const ExampleOperand& o, std::uint64_t seed) {
    const View v = view_of(o.type);
    if (v.dtype == DType::f32) fill(v.as<float>(), o, seed);
    if (v.dtype == DType::f64) fill(v.as<double>(), o, seed);
    if (v.dtype == DType::i32) fill(v.as<std::int32_t>(), o, seed);
    if (v.dtype == DType::i64) fill(v.as<std::int64_t>(), o, seed);
    if (kernels::is_half(v.dtype)) fill_halves(v, o, seed);
    views_.push_back(v);
  }
  static void fill_halves(const View& v, const ExampleOperand& o, std::uint64_t seed) {
    std::vector<float> wide(static_cast<std::size_t>(o.type.numel()));
    fill(wide.data(), o, seed);
    for (std::size_t i = 0; i < wide.size(); ++i)
      v.as<std::uint16_t>()[i] = v.dtype == DType::bf16 ? kernels::to_bf16(wide[i]).bits : kernels::to_f16(wide[i]).bits;
  }

  ParsedExample example_;
  std::vector<Type> outputs_;
  std::vector<std::unique_ptr<char, decltype(&std::free)>> memory_;
  std::vector<View> views_;
  KernelFault fault_;
  KernelCall call_;
  int runs_ = 1;
};

// ---- the table ----

double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
  return v[v.size() / 2];
}

struct Row {
  std::string text;
  Limit limit;
  std::int64_t bytes;
  double ns, copy_ns, exp_ns;  // per element; the last two are the least times by bytes and by exponentials
  double least() const { return limit == Limit::exp ? std::max(copy_ns, exp_ns) : copy_ns; }
  double percent() const { return 100 * least() / ns; }
};

Row measure(const Case& c, std::int64_t bytes, int rounds) {
  Work work(c.text, bytes), copy("neg(f32[R,1024])", bytes), exp("exp(f32[R,1024])", 16384);
  std::vector<double> ns, copy_ns, exp_ns;
  for (int round = 0; round < rounds; ++round) {
    ns.push_back(work.run_ns());
    copy_ns.push_back(copy.run_ns());
    exp_ns.push_back(exp.run_ns());
  }
  if (work.fault()) fmt::print(stderr, "{}: {}\n", c.text, work.fault());
  const auto n = static_cast<double>(work.elements());
  const double copied = median(copy_ns) / static_cast<double>(copy.bytes()) * static_cast<double>(work.bytes());
  return {c.text, c.limit, work.bytes(), median(ns) / n, copied / n, median(exp_ns) / static_cast<double>(exp.elements())};
}

void print(std::vector<Row> rows) {
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.percent() < b.percent(); });
  fmt::print("{:>9} {:>9} {:>9} {:>9} {:>8}  {}\n", "KiB", "ns/elem", "copy ns", "exp ns", "percent", "kernel");
  for (const Row& r : rows)
    fmt::print("{:>9} {:>9.3f} {:>9.3f} {:>9.3f} {:>7.0f}%  {}\n", r.bytes / 1024, r.ns, r.copy_ns,
               r.limit == Limit::exp ? r.exp_ns : 0.0, r.percent(), r.text);
}

// ---- products ----

Work product_work(const Product& p, const char* real) {
  std::string text = p.text;
  for (std::size_t at; (at = text.find("real")) != std::string::npos;) text.replace(at, 4, real);
  return Work(text, 0);
}

void measure_product(const Product& p, int rounds) {
  const std::string turned = p.turned;
  Work f32 = product_work(p, "f32"), bf16 = product_work(p, "bf16");
  if (!bf16.takes_its_types()) return;
  std::vector<double> ns[2];
  for (Work* work : {&f32, &bf16}) {
    if (turned.find("a'") != turned.npos) work->turn(0);
    if (turned.find("b'") != turned.npos) work->turn(1);
  }
  for (int round = 0; round < rounds; ++round) {
    ns[0].push_back(f32.run_ns());
    ns[1].push_back(bf16.run_ns());
  }
  fmt::print("{:>9.1f} {:>9.1f} {:>8.2f}  {} {}\n", f32.flops() / median(ns[0]), f32.flops() / median(ns[1]),
             median(ns[1]) / median(ns[0]), p.text, p.turned);
}

bool is_chosen(const std::string& text, const std::vector<std::string>& names) {
  return names.empty() ||
         std::any_of(names.begin(), names.end(), [&](const std::string& name) { return text.find(name) != text.npos; });
}

}  // namespace

int main(int argc, char** argv) {
  int rounds = 15;
  std::vector<std::int64_t> sizes = {256 << 10, 64 << 20};
  std::vector<std::string> names;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--rounds" && i + 1 < argc)
      rounds = std::max(1, std::atoi(argv[++i]));
    else if (word == "--bytes" && i + 1 < argc)
      sizes = {std::max(1LL, std::atoll(argv[++i]))};
    else
      names.push_back(word);
  }
  std::vector<Row> rows;
  for (const Case& c : kCases)
    for (const std::int64_t bytes : sizes)
      if (is_chosen(c.text, names)) rows.push_back(measure(c, bytes, rounds));
  if (!rows.empty()) print(std::move(rows));
  fmt::print("{:>9} {:>9} {:>8}  {}\n", "f32 GF/s", "bf16 GF/s", "time", "kernel");
  for (const Product& p : kProducts)
    if (is_chosen(p.text, names)) measure_product(p, rounds);
}
