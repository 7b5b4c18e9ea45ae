// One node of a graph while it is exported: its operands, its attributes, and the ONNX nodes that take its place. The functions
// of the table (export_ops.h) get one of these and write formulas: `n[1] * n[0] * (1 - n[0])` appends three nodes.
#pragma once

#include <tapedeck/capture/onnx/export/model_builder.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tapedeck::onnx {

class NodeExport;

// A value of the model as a term of a formula. Numbers beside it become constants of its dtype.
class Term {
 public:
  Term() = default;
  Term(NodeExport& at, std::string name, DType dtype) : at_(&at), name_(std::move(name)), dtype_(dtype) {}
  const std::string& name() const { return name_; }  // empty: an operand that is not given
  DType dtype() const { return dtype_; }
  NodeExport& at() const { return *at_; }
  Term as(DType dtype) const;        // itself if it has this dtype
  Term apply(const char* op) const;  // of one operand, with a result of the same dtype
  Term like(double number) const;    // a constant of the same dtype

 private:
  NodeExport* at_ = nullptr;
  std::string name_;
  DType dtype_ = DType::f32;
};
using Terms = std::vector<Term>;

// A term, or a number that stands beside one.
class Factor {
 public:
  Factor(Term term) : term_(std::move(term)) {}  // NOLINT: implicit on purpose
  Factor(double number) : number_(number) {}     // NOLINT: implicit on purpose
  bool is_term() const { return !term_.name().empty(); }
  Term beside(const Term& other) const { return is_term() ? term_ : other.like(number_); }
  const Term& term() const { return term_; }

 private:
  Term term_;
  double number_ = 0;
};

// An attribute by its name.
struct Named {
  std::string name;
  Attribute value;
  Named(const char* n, int v) : Named(n, static_cast<std::int64_t>(v)) {}
  Named(const char* n, std::int64_t v);
  Named(const char* n, double v);
  Named(const char* n, const std::string& v);
  Named(const char* n, const Integers& v);
  Named(const char* n, std::shared_ptr<Graph> v);
};
using Attributes = std::vector<Named>;

class NodeExport {
 public:
  NodeExport(ModelBuilder& model, NodeId node);

  // ---- the node ----
  const std::string& op() const { return op_; }
  int count() const { return node_.n_inputs; }
  Term operator[](int i);  // an operand; an empty term if there are fewer
  const Type& in(int i) const;
  const Type& out(int i = 0) const;
  bool wants(int i) const;  // does anything read this result?
  template <class A>
  const A& attributes() const {
    return *static_cast<const A*>(model_.graph().attributes(node_));
  }
  const Literal* literal() const { return model_.graph().literal(node_); }
  const void* raw_attributes() const { return model_.graph().attributes(node_); }
  const Op& description() const { return *node_.op; }
  ModelBuilder& model() const { return model_; }
  ValueId value(int i) const { return model_.graph().inputs(node_)[static_cast<std::size_t>(i)]; }
  const std::string& result_name() const { return model_.name_of(node_.first_output); }
  const tapedeck::Graph& region(int i) const { return *model_.graph().regions_of(node_)[static_cast<std::size_t>(i)]; }
  [[noreturn]] void refuse(const std::string& reason) const { throw Refusal{reason}; }

  // ---- what takes its place ----
  Term add(const char* op, const Terms& operands, DType result, const Attributes& attributes = {});
  Terms add_several(const char* op, const Terms& operands, const std::vector<DType>& results,
                    const Attributes& attributes = {});
  // The same; the model states the type of the result, because the operands do not decide its size.
  Term add_stated(const char* op, const Terms& operands, const Type& result, const Attributes& attributes = {});
  Term number(double value, DType dtype);  // a constant of no dimension
  Term list(const Integers& values);       // a constant i64 [n]
  Term constant(const Type& type, std::string bytes);
  Term reals(const Shape& shape, const std::vector<double>& values, DType dtype);
  Term integers(const Shape& shape, const Integers& values);   // i64
  Term filled(const Shape& shape, double value, DType dtype);  // a number in every place

  // Appends the nodes of a region, which reads these terms as its inputs; its results.
  Terms inlined(const tapedeck::Graph& region, const Terms& inputs);

  // Appends the nodes that `write` adds to the outermost graph, where all graphs can read its result.
  Term in_outermost(const std::function<Term()>& write);

  // Appends the nodes to the model, with the results of the node as their results.
  void finish(const Terms& results);

 private:
  friend class InnerGraph;
  // The same on operands of another dtype, where ONNX does not have the op for their own.
  Terms add_wide(const char* op, Terms operands, std::vector<DType> results, const Attributes& attributes, DType own,
                 DType wide);

  ModelBuilder& model_;
  NodeId id_;
  const tapedeck::Node& node_;
  std::string op_;
  std::vector<std::string> given_;  // names of the operands
  std::vector<Node> nodes_;
  std::vector<std::pair<std::string, Type>> stated_;  // types of results
  std::map<std::string, ValueInfo> inlined_values_;   // whose types regions in the place of nodes state
  std::string base_;                                  // of the names of values between the nodes
};

// A graph inside the node. From its beginning to its end the nodes that are added stand in it.
class InnerGraph {
 public:
  explicit InnerGraph(NodeExport& n);
  ~InnerGraph();
  InnerGraph(const InnerGraph&) = delete;
  Term input(const std::string& name, const Type& type);
  void output(const Term& result, const Type& type);
  Named end(const char* attribute);  // the attribute that holds it

 private:
  NodeExport& n_;
  std::vector<Node> around_;  // the nodes before it
  std::map<std::string, ValueInfo> values_around_;
  std::shared_ptr<Graph> graph_;
  bool open_ = true;
};

// ---- arithmetic ----

Term binary(const char* op, const Factor& a, const Factor& b);
Term comparison(const char* op, const Factor& a, const Factor& b);
inline Term operator+(const Factor& a, const Factor& b) { return binary("Add", a, b); }
inline Term operator-(const Factor& a, const Factor& b) { return binary("Sub", a, b); }
inline Term operator*(const Factor& a, const Factor& b) { return binary("Mul", a, b); }
inline Term operator/(const Factor& a, const Factor& b) { return binary("Div", a, b); }
inline Term operator-(const Term& x) { return x.apply("Neg"); }
inline Term operator<(const Factor& a, const Factor& b) { return comparison("Less", a, b); }
inline Term operator>(const Factor& a, const Factor& b) { return comparison("Greater", a, b); }
inline Term operator<=(const Factor& a, const Factor& b) { return comparison("LessOrEqual", a, b); }
inline Term operator>=(const Factor& a, const Factor& b) { return comparison("GreaterOrEqual", a, b); }
inline Term is(const Factor& a, const Factor& b) { return comparison("Equal", a, b); }
inline Term both(const Term& a, const Term& b) { return comparison("And", a, b); }
inline Term either(const Term& a, const Term& b) { return comparison("Or", a, b); }
inline Term negated(const Term& a) { return a.apply("Not"); }
inline Term larger(const Factor& a, const Factor& b) { return binary("Max", a, b); }
inline Term smaller(const Factor& a, const Factor& b) { return binary("Min", a, b); }
inline Term power(const Factor& a, const Factor& b) { return binary("Pow", a, b); }
inline Term exp_of(const Term& x) { return x.apply("Exp"); }
inline Term log_of(const Term& x) { return x.apply("Log"); }
inline Term root_of(const Term& x) { return x.apply("Sqrt"); }
inline Term magnitude_of(const Term& x) { return x.apply("Abs"); }
inline Term sigmoid_of(const Term& x) { return x.apply("Sigmoid"); }
inline Term tanh_of(const Term& x) { return x.apply("Tanh"); }
Term choose(const Term& condition, const Factor& a, const Factor& b);  // a where the condition holds, else b

// ---- shapes ----

Integers list_of(const Ints& values);
Integers list_of(const Shape& shape);
Shape shape_of(const Integers& sizes);
Term reshaped(const Term& x, const Shape& shape);
Term reshaped(const Term& x, const Integers& sizes);  // one size may be -1
Term transposed(const Term& x, const Integers& axes);
Term expanded(const Term& x, const Shape& shape);
Term joined(const Terms& parts, std::int64_t axis);
Term part_of(const Term& x, std::int64_t axis, std::int64_t start, std::int64_t end);
Term padded(const Term& x, const Integers& before, const Integers& after, double value = 0);
Term reduced(const char* op, const Term& x, const Integers& axes, bool keepdims);
Term product(const Term& a, const Term& b);  // of matrices
// x with `src` added at (or put to) the places of its axis that `places` names, one for each element of src.
Term scattered(const Term& x, const Term& places, const Term& src, std::int64_t axis, bool adds);
Term counted(NodeExport& n, std::int64_t count, std::int64_t start = 0);  // i64 [count]: start, start + 1, ...
Term gathered(const Term& x, const Term& places, std::int64_t axis);      // whole slices

}  // namespace tapedeck::onnx
