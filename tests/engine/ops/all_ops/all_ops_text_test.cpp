// Tests the text of every op: a graph of one node is printed, parsed and printed again to the same text, for all attributes.
#include <tapedeck/engine/ir/graph_access.h>
#include <tapedeck/engine/text/attr_parser.h>
#include <tapedeck/engine/text/lexer.h>
#include <tapedeck/engine/text/text.h>
#include <tapedeck/tests/engine/all_ops.h>

#include <cstring>

namespace tapedeck::testing {
namespace {

Graph one_node(const Op& op, const std::vector<Type>& inputs, const void* attrs, const std::vector<Type>& outputs) {
  Graph g;
  std::vector<ValueId> operands;
  for (std::size_t i = 0; i < inputs.size(); ++i) operands.push_back(g.add_input("x" + std::to_string(i), inputs[i]));
  const NodeId n = g.add_node(op, operands, attrs, outputs);
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    g.outputs.push_back(g.nodes[n].first_output + static_cast<ValueId>(k));
    g.output_names.emplace_back();
  }
  return g;
}

void expect_equal_graphs(const Graph& a, const Graph& b) {
  ASSERT_EQ(a.node_count(), b.node_count());
  ASSERT_EQ(a.value_count(), b.value_count());
  for (std::size_t n = 0; n < a.nodes.size(); ++n) {
    EXPECT_EQ(a.nodes[n].op, b.nodes[n].op);
    EXPECT_TRUE(same_attributes(a, a.nodes[n], b, b.nodes[n]));
    EXPECT_EQ(std::vector<ValueId>(a.inputs(a.nodes[n]).begin(), a.inputs(a.nodes[n]).end()),
              std::vector<ValueId>(b.inputs(b.nodes[n]).begin(), b.inputs(b.nodes[n]).end()));
  }
  for (std::size_t v = 0; v < a.values.size(); ++v) EXPECT_EQ(a.values[v].type, b.values[v].type);
  EXPECT_EQ(a.outputs, b.outputs);
}

TEST(AllOpsText, ExamplesComeBackFromText) {
  for_every_example([](const Example& e) {
    for (DType real : {DType::f32, DType::f64}) {
      const Graph g = one_node(*e.op, operand_types(e, real), e.attrs(), inferred(e, real).value());
      verify(g);
      const std::string text = print(g);
      const Graph back = parse(text);
      expect_equal_graphs(g, back);
      EXPECT_EQ(print(back), text);
    }
  });
}

// The parser refuses operands and results whose types inference would not give.
TEST(AllOpsText, WrongResultTypesAreRefused) {
  for_every_example([](const Example& e) {
    std::vector<Type> outputs = inferred(e).value();
    outputs[0].shape.sizes[0] = outputs[0].shape.rank == 0 ? 3 : outputs[0].shape[0] + 1;
    outputs[0].shape.rank = std::max(outputs[0].shape.rank, 1);
    const std::string text = print(one_node(*e.op, operand_types(e), e.attrs(), outputs));
    EXPECT_THROW(parse(text), ParseError) << text;
  });
}

// ---- attributes: every field with a value that is not its default ----

template <class T>
void store(std::vector<unsigned char>& attrs, const Field& field, const T& value) {
  std::memcpy(attrs.data() + field.offset, &value, sizeof value);
}

const Ints kLists[] = {{7, -2, 0, 1, 2, 3, 4, 5}, {std::int64_t{1} << 62}, {}, {-1, -1, -1}};

void change(std::vector<unsigned char>& attrs, const Field& field, int seed) {
  constexpr double kReals[] = {0.1, -1e300, 5e-324, -0.0};
  switch (field.kind) {
    case FieldKind::integer:
      return store(attrs, field, field_of<std::int64_t>(attrs.data(), field) - 1 - (std::int64_t{1} << (20 * seed)));
    case FieldKind::real:
      return store(attrs, field, kReals[seed]);
    case FieldKind::boolean:
      return store(attrs, field, !field_of<bool>(attrs.data(), field));
    case FieldKind::string:
      return store(attrs, field, Name("a \"quoted\"\n name " + std::to_string(seed)));
    case FieldKind::dtype:
      return store(attrs, field, seed % 2 ? DType::bf16 : DType::boolean);
    case FieldKind::ints:
      return store(attrs, field, kLists[seed]);
    case FieldKind::tensor:
      return;
  }
}

bool same_field(const void* a, const void* b, const Field& field) {
  switch (field.kind) {
    case FieldKind::integer:
      return field_of<std::int64_t>(a, field) == field_of<std::int64_t>(b, field);
    case FieldKind::real:
      return std::memcmp(&field_of<double>(a, field), &field_of<double>(b, field), sizeof(double)) == 0;
    case FieldKind::boolean:
      return field_of<bool>(a, field) == field_of<bool>(b, field);
    case FieldKind::string:
      return field_of<Name>(a, field) == field_of<Name>(b, field);
    case FieldKind::dtype:
      return field_of<DType>(a, field) == field_of<DType>(b, field);
    case FieldKind::ints:
      return field_of<Ints>(a, field) == field_of<Ints>(b, field);
    case FieldKind::tensor:
      return true;
  }
  return false;
}

// The text between the braces of the node's line.
std::string printed_attributes(const Op& op, const std::vector<unsigned char>& attrs) {
  const std::string text = print(one_node(op, {}, attrs.data(), {}));
  const std::size_t node = text.find('\n');
  const std::size_t open = text.find('{', node);
  return text.substr(open, text.rfind('}', text.rfind('}') - 1) + 1 - open);
}

TEST(AllOpsText, AttributesComeBackWhateverTheyAre) {
  for_every_op([](const Op& op) {
    if (!op.attrs || tensor_field(op)) return;  // text_test.cpp tests constants
    const auto* defaults = static_cast<const unsigned char*>(op.attrs->defaults);
    for (int seed = 0; seed < 4; ++seed)
      for (int one = -1; one < op.attrs->n_fields; ++one) {  // -1: change all fields
        std::vector<unsigned char> attrs(defaults, defaults + op.attrs->size);
        for (int i = 0; i < op.attrs->n_fields; ++i)
          if (one < 0 || one == i) change(attrs, op.attrs->fields[i], seed);
        const std::string text = printed_attributes(op, attrs), file = "attributes";
        SCOPED_TRACE(text);
        Lexer lexer(text, file);
        ParsedAttrs parsed;
        parse_attributes(lexer, op, 0, {}, {}, &parsed);
        ASSERT_EQ(parsed.bytes.size(), op.attrs->size);
        for (int i = 0; i < op.attrs->n_fields; ++i)
          EXPECT_TRUE(same_field(attrs.data(), parsed.bytes.data(), op.attrs->fields[i])) << op.attrs->fields[i].name;
      }
  });
}

// A field that the text leaves out has its default, or the parser asks for it.
TEST(AllOpsText, FieldsLeftOutHaveTheirDefaults) {
  for_every_op([](const Op& op) {
    if (!op.attrs || tensor_field(op)) return;
    const std::string none = "{}", file = "attributes";
    Lexer lexer(none, file);
    ParsedAttrs parsed;
    bool required = false;
    for (int i = 0; i < op.attrs->n_fields; ++i) required = required || op.attrs->fields[i].required;
    if (required) {
      EXPECT_THROW(parse_attributes(lexer, op, 0, {}, {}, &parsed), ParseError);
      return;
    }
    parse_attributes(lexer, op, 0, {}, {}, &parsed);
    for (int i = 0; i < op.attrs->n_fields; ++i)
      EXPECT_TRUE(same_field(op.attrs->defaults, parsed.bytes.data(), op.attrs->fields[i])) << op.attrs->fields[i].name;
  });
}

// For any attributes that a text may hold, inference returns types or throws a TypeError.
TEST(AllOpsText, InferenceSurvivesEveryAttribute) {
  for_every_example([](const Example& e) {
    if (!e.op->attrs || tensor_field(*e.op)) return;
    for (int seed = 0; seed < 4; ++seed)
      for (int one = -1; one < e.op->attrs->n_fields; ++one) {
        Example other = e;
        for (int i = 0; i < e.op->attrs->n_fields; ++i)
          if (one < 0 || one == i) change(other.attributes, e.op->attrs->fields[i], seed);
        if (const auto outputs = inferred(other)) {
          for (const Type& t : *outputs)
            EXPECT_GE(checked_bytes(t.dtype, {t.shape.sizes, static_cast<std::size_t>(t.shape.rank)}), 0);
          EXPECT_GE(cost_us(*e.op, operand_types(other), *outputs, other.attrs()), 0);
        }
      }
  });
}

}  // namespace
}  // namespace tapedeck::testing
