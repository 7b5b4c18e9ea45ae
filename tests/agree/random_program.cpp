// Implements random_program.h: runs the lines of a random program through eager calls, and prints them as text.
#include <tapedeck/tests/agree/random_program.h>

#include <tapedeck/engine/eager/dispatch.h>
#include <tapedeck/engine/eager/inplace.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/ops/control.h>
#include <tapedeck/engine/ops/ops.h>

#include <algorithm>

namespace tapedeck::agree {

namespace {

constexpr Site kSite{"random_program", 1};

Tensor value_of(const Operand& o, const Tensors& variables) {
  const Tensor& t = variables[o.var];
  if (t.defined()) return t;
  return full(o.type.shape, is_floating(o.type.dtype) ? o.stand_in : 1, o.type.dtype, kSite);
}

void set_results(const Line& line, const Tensors& results, Tensors& variables) {
  for (std::size_t i = 0; i < results.size(); ++i) variables[static_cast<std::size_t>(line.first_result) + i] = results[i];
}

// Copies the first elements of the value into the buffer, as many as the buffer has, cast to its dtype.
void keep(const Tensor& buffer, const Tensor& value) {
  const NoGrad no_grad;
  const std::int64_t n = std::min(buffer.numel(), value.numel());
  const Tensor from = slice(reshape(value.detach(), {value.numel()}), 0, 0, n);
  copy_(slice(reshape(buffer, {buffer.numel()}), 0, 0, n), is_floating(buffer.dtype()) ? cast(from, buffer.dtype()) : from);
}

void write(const Line& line, const Tensors& operands) {
  switch (line.kind) {
    case LineKind::copy_in:
      copy_(operands[0], operands[1]);
      break;
    case LineKind::fill:
      fill_(operands[0], line.number, kSite);
      break;
    case LineKind::keep:
      keep(operands[0], operands[1]);
      break;
    default:
      if (operands.size() == 1)
        apply_(*line.op, operands[0], line.attrs(), kSite);
      else
        apply_in_place(*line.op, operands, line.attrs(), kSite);
  }
}

// Runs the body with a carried value and returns its outcome. The caller's variables stay as they are.
Tensor outcome_of_line(const Line& line, const Tensors& variables, const Tensor& carried) {
  Tensors inside = variables;
  inside[line.carried] = carried;
  run_lines(line.body, inside);
  return tanh(value_of(line.outcome, inside));
}

// The loop carries an alias of the operand, not the operand itself. If one tensor were carried and captured, eager code
// would add its gradient pieces as those of one value, a graph as those of two operands: the order of the sums would differ.
Tensor run_control(const Line& line, const Tensors& variables, const Tensors& operands) {
  const Tensor start = alias(operands[0]);
  const auto body = [&](const Tensors& c) { return outcome_of_line(line, variables, c[0]); };
  LoopOptions options;
  options.checkpoint_every = line.checkpoint;
  if (line.kind == LineKind::scan) {
    options.max_trips = static_cast<std::int64_t>(line.number);
    return scan([&](const Tensors& c) -> Tensors { return {body(c)}; }, {start}, {}, {}, options, kSite).carried[0];
  }
  if (line.kind == LineKind::loop) {
    options.max_trips = 4;
    const auto small = [&](const Tensors& c) { return less(mean(cast(abs(c[0]), DType::f32)), line.number); };
    return while_loop(
               small, [&](const Tensors& c) -> Tensors { return {body(c) * 1.3}; }, {start}, {}, options, kSite)
        .carried[0];
  }
  const Tensor positive = greater(sum(cast(operands[1], DType::f32)), 0);
  return cond(
      positive, [&](const Tensors& x) -> Tensors { return {body(x)}; },
      [](const Tensors& x) -> Tensors { return {x[0] * 0.5}; }, {start}, kSite)[0];
}

}  // namespace

void run_line(const Line& line, Tensors& variables) {
  Tensors operands;
  for (const Operand& o : line.operands) operands.push_back(value_of(o, variables));
  switch (line.kind) {
    case LineKind::op:
      return set_results(line, apply_all(*line.op, operands, line.attrs(), kSite), variables);
    case LineKind::dropout:
      return set_results(line, {dropout(operands[0], line.number)}, variables);
    case LineKind::uniform:
      return set_results(line, {uniform(line.results[0].shape, -1, 1, line.results[0].dtype, kSite)}, variables);
    case LineKind::detach:
      return set_results(line, {operands[0].detach()}, variables);
    case LineKind::write:
    case LineKind::copy_in:
    case LineKind::fill:
      return write(line, operands);
    case LineKind::keep:
      if (variables[line.operands[0].var].defined()) write(line, operands);
      return;
    case LineKind::scan:
    case LineKind::loop:
    case LineKind::branch:
      return set_results(line, {run_control(line, variables, operands)}, variables);
    case LineKind::region:
      break;
  }
  const Tensor result = checkpoint([&] {
    Tensors inside = variables;
    run_lines(line.body, inside);
    return value_of(line.outcome, inside);
  });
  set_results(line, {result}, variables);
}

void run_lines(const std::vector<Line>& lines, Tensors& variables) {
  for (const Line& line : lines) run_line(line, variables);
}

bool is_control(const Line& line) { return line.carried >= 0; }

Builder builder_of(const RandomProgram& program) {
  return [program](Program& p) {
    Tensors leaves(static_cast<std::size_t>(program.variables)), parameters;
    std::vector<int> inputs;
    for (const Leaf& leaf : program.leaves) {
      Tensor& t = leaves[leaf.var];
      const std::string name = "v" + std::to_string(leaf.var);
      switch (leaf.kind) {
        case LeafKind::input:
          p.input(leaf.type.shape, leaf.range, leaf.type.dtype);
          inputs.push_back(leaf.var);
          break;
        case LeafKind::parameter:
          parameters.push_back(t = p.parameter(name, leaf.type.shape, leaf.range, leaf.type.dtype));
          break;
        case LeafKind::buffer:
          t = p.buffer(name, leaf.type.shape, leaf.range, leaf.type.dtype);
          break;
        case LeafKind::constant:
          t = p.constant(leaf.type.shape, leaf.range, leaf.type.dtype);
          break;
      }
    }
    if (std::any_of(program.lines.begin(), program.lines.end(), is_control)) p.branches();
    Optimizer* optimizer = nullptr;
    if (program.trainer == Trainer::sgd) optimizer = &p.own<Sgd>(parameters, SgdOptions{.lr = 0.05, .momentum = 0.5});
    if (program.trainer == Trainer::adamw) optimizer = &p.own<AdamW>(parameters, AdamWOptions{.lr = 0.01});
    p.train(
        [program, leaves, inputs](const Tensors& in) {
          Tensors variables = leaves;
          for (std::size_t i = 0; i < inputs.size(); ++i) variables[inputs[i]] = in[i];
          run_lines(program.lines, variables);
          Tensor loss;
          for (const Operand& o : program.losses) {
            const Tensor piece = mean(cast(value_of(o, variables), DType::f32));
            loss = loss.defined() ? loss + piece : piece;
          }
          Tensors results{loss};
          for (const Operand& o : program.outputs) results.push_back(value_of(o, variables));
          return results;
        },
        parameters, optimizer);
  };
}

// ---- printing a program as text ----

namespace {

std::string name_of(const Operand& o) { return fmt::format("v{}", o.var); }

// The attributes of the line, as the graph's text prints them.
std::string attributes_text(const Line& line) {
  if (!line.op || !line.op->attrs) return "";
  Graph g;
  std::vector<ValueId> inputs;
  std::vector<Type> types;
  for (std::size_t i = 0; i < line.operands.size(); ++i) {
    inputs.push_back(g.add_input("v" + std::to_string(i), line.operands[i].type));
    types.push_back(line.operands[i].type);
  }
  std::vector<Type> outputs = line.results;
  if (outputs.empty()) infer_types(*line.op, types, line.attrs(), outputs);
  const std::string text = g.node_text(g.add_node(*line.op, inputs, line.attrs(), outputs));
  const std::size_t brace = text.find('{');
  return brace == text.npos ? "" : " " + text.substr(brace, text.rfind('}') + 1 - brace);
}

void add_line(const Line& line, const std::string& indent, std::string* text) {
  std::string results, operands;
  for (std::size_t i = 0; i < line.results.size(); ++i)
    results += fmt::format("{}v{}: {}", i ? ", " : "", line.first_result + static_cast<int>(i), to_string(line.results[i]));
  for (std::size_t i = 0; i < line.operands.size(); ++i) operands += (i ? ", " : "") + name_of(line.operands[i]);
  if (!results.empty()) results += " = ";
  switch (line.kind) {
    case LineKind::op:
      *text += fmt::format("{}{}{}({}){};\n", indent, results, line.op->name, operands, attributes_text(line));
      break;
    case LineKind::dropout:
      *text += fmt::format("{}{}dropout({}, {});\n", indent, results, operands, line.number);
      break;
    case LineKind::uniform:
      *text += fmt::format("{}{}uniform();\n", indent, results);
      break;
    case LineKind::detach:
      *text += fmt::format("{}{}{}.detach();\n", indent, results, operands);
      break;
    case LineKind::write:
      *text += fmt::format("{}{}_({}){};\n", indent, line.op->name, operands, attributes_text(line));
      break;
    case LineKind::copy_in:
      *text += fmt::format("{}copy_({});\n", indent, operands);
      break;
    case LineKind::fill:
      *text += fmt::format("{}fill_({}, {});\n", indent, operands, line.number);
      break;
    case LineKind::keep:
      *text += fmt::format("{}keep({});\n", indent, operands);
      break;
    case LineKind::region:
      *text += fmt::format("{}{}checkpoint([&] {{\n", indent, results);
      for (const Line& inner : line.body) add_line(inner, indent + "  ", text);
      *text += fmt::format("{}  return {};\n{}}});\n", indent, name_of(line.outcome), indent);
      break;
    case LineKind::scan:
    case LineKind::loop:
    case LineKind::branch: {
      const std::string head = line.kind == LineKind::scan ? fmt::format("scan {} times", line.number)
                               : line.kind == LineKind::loop
                                   ? fmt::format("while mean(|v{}|) < {}, at most 4 times", line.carried, line.number)
                                   : fmt::format("if sum({}) > 0", name_of(line.operands[1]));
      *text += fmt::format("{}{}{}, v{} = {}, checkpoint {} {{\n", indent, results, head, line.carried,
                           name_of(line.operands[0]), line.checkpoint);
      for (const Line& inner : line.body) add_line(inner, indent + "  ", text);
      *text += fmt::format("{}  -> tanh({});\n{}}}\n", indent, name_of(line.outcome), indent);
    }
  }
}

int count(const std::vector<Line>& lines) {
  int n = 0;
  for (const Line& line : lines) n += 1 + count(line.body);
  return n;
}

}  // namespace

std::string text_of(const RandomProgram& program) {
  const char* kinds[] = {"input", "parameter", "buffer", "constant"};
  std::string text;
  for (const Leaf& leaf : program.leaves)
    text += fmt::format("v{}: {} = {}(in ({}, {}));\n", leaf.var, to_string(leaf.type), kinds[static_cast<int>(leaf.kind)],
                        leaf.range.low, leaf.range.high);
  for (const Line& line : program.lines) add_line(line, "", &text);
  std::string losses, outputs;
  for (const Operand& o : program.losses) losses += (losses.empty() ? "mean(" : ") + mean(") + name_of(o);
  for (const Operand& o : program.outputs) outputs += ", " + name_of(o);
  const char* trainers[] = {"next_step()", "Sgd(momentum 0.5).step()", "AdamW().step()"};
  return text + fmt::format("loss = {}); backward(loss); {}; return loss{}, gradients;\n", losses,
                            trainers[static_cast<int>(program.trainer)], outputs);
}

int line_count(const RandomProgram& program) { return count(program.lines); }

}  // namespace tapedeck::agree
