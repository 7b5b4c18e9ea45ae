// Implements subject.h: runs the eager steps, captures a step or a forward pass, and records what replays must repeat.
#include <tapedeck/tests/agree/subject.h>

#include <tapedeck/tests/engine/all_ops.h>

#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/ops/ops.h>

namespace tapedeck::agree {

namespace {

std::string difference(const Tensors& got, const Tensors& expected, const char* what, int step) {
  if (got.size() != expected.size()) return fmt::format("step {}: {} {}s, not {}", step, got.size(), what, expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (got[i].type() != expected[i].type())
      return fmt::format("step {}, {} {} is {}, not {}", step, what, i, to_string(got[i].type()),
                         to_string(expected[i].type()));
    if (bit_equal(got[i], expected[i])) continue;
    const std::vector<double> a = testing::elements(got[i]), b = testing::elements(expected[i]);
    std::size_t at = 0;
    while (at + 1 < a.size() && std::memcmp(&a[at], &b[at], sizeof(double)) == 0) ++at;
    return fmt::format("step {}, {} {} ({}): element {} is {}, not {}", step, what, i, to_string(got[i].type()), at, a[at],
                       b[at]);
  }
  return "";
}

}  // namespace

std::string difference(const Record& got, const Record& expected, int step) {
  const std::string outputs = difference(got.outputs, expected.outputs, "result", step);
  return outputs.empty() ? difference(got.state, expected.state, "state", step) : outputs;
}

std::unique_ptr<Program> made(const Builder& build, std::uint64_t seed) {
  auto program = std::make_unique<Program>(seed);
  build(*program);
  return program;
}

std::vector<Record> run_eager_twin(const Builder& build, std::uint64_t seed) {
  const auto program = made(build, seed);
  std::vector<Record> records;
  for (int step = 0; step < kSteps; ++step) {
    program->prepare(step);
    const Tensors outputs = copied(program->step()(program->inputs(step)));
    records.push_back({outputs, copied(program->state())});
  }
  return records;
}

Subject captured_subject(const Builder& build, std::uint64_t seed) {
  Subject s;
  s.program = made(build, seed);
  Program& p = *s.program;
  p.prepare(0);
  p.step()(p.inputs(0));
  p.prepare(1);
  {
    Capture capture("program");
    Tensors inside;
    const Tensors given = p.inputs(1);
    for (std::size_t i = 0; i < given.size(); ++i) inside.push_back(capture.input(fmt::format("x{}", i), given[i]));
    const Tensors outputs = p.step()(inside);
    for (std::size_t i = 0; i < outputs.size(); ++i) capture.output(fmt::format("y{}", i), outputs[i]);
    s.captured = capture.finish();
  }
  s.start = copied(s.captured.state);
  for (int step = kFirstReplayed; step < kSteps; ++step) {
    p.prepare(step);
    const Tensors given = p.inputs(step);
    Tensors inputs = given;  // declared inputs come first; the other inputs are tensors that their owners set between steps
    for (std::size_t i = given.size(); i < s.captured.inputs.size(); ++i) inputs.push_back(copied(s.captured.inputs[i]));
    s.inputs.push_back(inputs);
    const Tensors outputs = copied(p.step()(given));
    s.expected.push_back({outputs, copied(s.captured.state)});
  }
  return s;
}

namespace {

// The index of a tensor in a list, or the size of the list if the tensor is not in it.
std::size_t place_of(const Tensor& t, const Tensors& all) {
  std::size_t i = 0;
  while (i < all.size() && all[i].impl() != t.impl()) ++i;
  return i;
}

Tensors expected_gradients(const Builder& build, std::uint64_t seed, const std::vector<std::size_t>& wanted) {
  const auto program = made(build, seed);
  program->prepare(0);
  const Tensors outputs = program->forward()(program->inputs(0));
  Tensors expected = copied(outputs);
  backward(outputs[0]);
  for (std::size_t i : wanted) {
    const Tensor& p = program->wrt()[i];
    expected.push_back(p.grad().defined() ? copied(p.grad()) : zeros(p.shape(), p.dtype()));
  }
  return expected;
}

}  // namespace

ForwardSubject forward_subject(const Builder& build, std::uint64_t seed) {
  ForwardSubject s;
  s.program = made(build, seed);
  Program& p = *s.program;
  if (p.has_own_gradients()) s.comparable = false;
  p.prepare(0);
  const Tensors state_before = copied(p.state()), given = p.inputs(0);
  const Tensor rng_before = copied(rng_state());
  {
    Capture capture("forward");
    Tensors inside;
    for (std::size_t i = 0; i < given.size(); ++i) inside.push_back(capture.input(fmt::format("x{}", i), given[i]));
    const Tensors outputs = p.forward()(inside);
    for (std::size_t i = 0; i < outputs.size(); ++i) capture.output(fmt::format("y{}", i), outputs[i]);
    s.captured = capture.finish();
  }
  s.inputs = given;
  for (std::size_t i = given.size(); i < s.captured.inputs.size(); ++i) s.inputs.push_back(copied(s.captured.inputs[i]));
  for (const Tensor& t : s.captured.state) {
    const std::size_t at = place_of(t, p.state());
    s.start.push_back(at < state_before.size() ? state_before[at] : t.role() == Role::rng ? rng_before : copied(t));
  }
  std::vector<std::size_t> wanted;
  for (std::size_t i = 0; i < p.wrt().size(); ++i) {
    const std::size_t at = place_of(p.wrt()[i], s.captured.state);
    if (at == s.captured.state.size()) continue;
    s.wrt.push_back(at);
    wanted.push_back(i);
  }
  s.expected = expected_gradients(build, seed, wanted);
  if (p.has_branches()) s.add_zero(s.expected);
  return s;
}

void ForwardSubject::add_zero(Tensors& results) const {
  const NoGrad no_grad;
  for (std::size_t i = results.size() - wrt.size(); i < results.size(); ++i) results[i] = copied(results[i] + 0);
}

}  // namespace tapedeck::agree
