// Tests the registry of ops: every op describes itself completely, and wrong registrations are refused.
#include <tapedeck/tests/engine/examples.h>
#include <tapedeck/tests/engine/messages.h>

#include <set>

namespace tapedeck {
namespace {

void nothing(const KernelCall&) {}
void same(Infer& f) { f.outputs.assign(1, f.inputs[0]); }

Op minimal(const char* name) {
  Op op;
  op.name = name;
  op.doc = "for a test";
  op.examples = {"x(f32[3])"};
  op.min_inputs = op.max_inputs = 1;
  op.infer = same;
  op.kernels[0] = nothing;
  return op;
}

TEST(Registry, IsSortedAndFindsEveryOpByName) {
  const std::vector<const Op*> ops = all_ops();
  std::set<int> ids;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    EXPECT_TRUE(i == 0 || std::string(ops[i - 1]->name) < ops[i]->name) << ops[i]->name;
    EXPECT_EQ(find_op(ops[i]->name), ops[i]);
    EXPECT_TRUE(ids.insert(ops[i]->id).second) << ops[i]->name;
  }
  EXPECT_EQ(find_op("no_such_op"), nullptr);
  EXPECT_EQ(find_op(""), nullptr);
}

TEST(Registry, EveryOpSaysWhatItDoes) {
  for (const Op* op : all_ops()) {
    SCOPED_TRACE(op->name);
    EXPECT_GT(std::string(op->doc).size(), 1u);
    EXPECT_GE(op->version, 1);
    EXPECT_EQ(op->view != nullptr, op->is(kView));
    EXPECT_FALSE(op->is(kNoGradient) && op->vjp) << "a vjp that is never run";
    if (std::string(op->name).rfind("test.", 0) != 0) {
      EXPECT_EQ(op->vjp == nullptr, op->no_gradient[0] != 0) << "either a vjp or the reason why there is none";
    }
    EXPECT_EQ(op->run != nullptr, op->n_regions > 0) << "control flow is run by an interpreter";
    if (!op->is(kDeclaredTypes) && op->n_regions == 0) {
      EXPECT_FALSE(op->examples.empty());
      EXPECT_NE(op->infer, nullptr);
      EXPECT_TRUE(op->is(kView) || op->kernels[0]);
    }
    for (const InplacePair& p : op->inplace) {
      EXPECT_GE(p.output, 0);
      EXPECT_LT(p.output, op->max_outputs);
      EXPECT_GE(p.input, 0);
      if (op->max_inputs >= 0) {
        EXPECT_LT(p.input, op->max_inputs);
      }
    }
  }
}

TEST(Registry, ExamplesFitTheRuleOfTheirOp) {
  for (const testing::Example& e : testing::all_examples()) {
    SCOPED_TRACE(e.text);
    EXPECT_TRUE(e.text.rfind(std::string(e.op->name) + "(", 0) == 0 || std::string(e.op->name).rfind("test.", 0) == 0);
    std::vector<Type> inputs, outputs;
    for (const testing::Operand& o : e.operands) inputs.push_back(o.type);
    infer_types(*e.op, inputs, e.attrs(), outputs);
    EXPECT_GE(cost_us(*e.op, inputs, outputs, e.attrs()), 0);
    EXPECT_GE(workspace_bytes(*e.op, inputs, outputs, e.attrs()), 0);
  }
}

TEST(Registry, RefusesTheWrongNumberOfOperands) {
  for (const testing::Example& e : testing::all_examples()) {
    SCOPED_TRACE(e.text);
    std::vector<Type> inputs, outputs;
    for (const testing::Operand& o : e.operands) inputs.push_back(o.type);
    if (e.op->max_inputs >= 0) {
      std::vector<Type> more = inputs;
      while (static_cast<int>(more.size()) <= e.op->max_inputs) more.push_back({DType::f32, {2}});
      EXPECT_THROW(infer_types(*e.op, more, e.attrs(), outputs), TypeError);
    }
    if (e.op->min_inputs > 0) {
      EXPECT_THROW(infer_types(*e.op, {}, e.attrs(), outputs), TypeError);
    }
    if (e.op->attrs) {
      EXPECT_THROW(infer_types(*e.op, inputs, nullptr, outputs), TypeError);
    }
  }
}

TEST(Registry, RefusesOpsThatAreIncomplete) {
  register_op(minimal("test.registered"));
  EXPECT_NE(find_op("test.registered"), nullptr);
  EXPECT_EQ(testing::message_of<UsageError>([] { register_op(minimal("test.registered")); }),
            "op 'test.registered' is registered twice");
  EXPECT_EQ(testing::message_of<UsageError>([] { register_op(minimal("add")); }), "op 'add' is registered twice");
  Op no_rule = minimal("test.no_rule");
  no_rule.infer = nullptr;
  EXPECT_EQ(testing::message_of<UsageError>([&] { register_op(no_rule); }), "op 'test.no_rule' has no type inference");
  Op no_kernel = minimal("test.no_kernel");
  no_kernel.kernels[0] = nullptr;
  EXPECT_EQ(testing::message_of<UsageError>([&] { register_op(no_kernel); }), "op 'test.no_kernel' has no cpu kernel");
  EXPECT_EQ(find_op("test.no_kernel"), nullptr);
}

TEST(Registry, OpsOfAnotherLibraryDispatchLikeOurs) {
  Op op = minimal("test.twice");
  op.traits = kElementwise | kCheap;
  op.kernels[0] = [](const KernelCall& call) {
    const auto* x = static_cast<const float*>(call.inputs[0].data);
    auto* y = static_cast<float*>(call.outputs[0].data);
    for (std::int64_t i = 0; i < call.inputs[0].sizes[0]; ++i) y[i] = 2 * x[i];
  };
  op.vjp = [](Vjp&) {};
  const Op& twice = register_op(op);
  const Tensor x = tensor({1, 2, 3});
  EXPECT_EQ(apply(twice, {&x}, nullptr, {}).to_vector<float>(), (std::vector<float>{2, 4, 6}));
}

}  // namespace
}  // namespace tapedeck
