// The table of ONNX ops. An op is one entry: its name, its versions, its attributes, and a function that calls ops of Tapedeck.
// Families stand in files of their own (ops_*.cpp); all_onnx_ops() joins them.
#pragma once

#include <tapedeck/capture/onnx/node_call.h>

#include <cstdint>
#include <string_view>
#include <vector>

namespace tapedeck::onnx {

struct OnnxOp {
  const char* name;
  std::int64_t since;            // the first opset whose version of the op this entry reads
  const char* attributes;        // their names with spaces between them; another one is an error
  Tensors (*import)(NodeCall&);  // the results in order; those that the node does not name may be undefined
  std::int64_t until = 0;        // the first opset whose version means something else; 0: none that is known
  bool draws = false;            // random numbers: it is never computed at import
};

// The newest opset that the table was compared with. A model of a newer one imports, with a note.
inline constexpr std::int64_t kNewestOpset = 23;

// ONNX itself has the empty domain. Its ops of classical machine learning, such as scikit-learn's, have one of their own.
inline constexpr std::string_view kMlDomain = "ai.onnx.ml";

const OnnxOp* find_op(std::string_view domain, std::string_view name);
const std::vector<OnnxOp>& all_onnx_ops(std::string_view domain = {});  // sorted by name; empty for other domains
// The reason why an op of ONNX is not in the table; null for names that are in it, or that ONNX does not have.
const char* why_unsupported(std::string_view domain, std::string_view name);

// The function of an op that is one op of Tapedeck with one operand.
template <Tensor (*f)(const Arg&)>
Tensors unary(NodeCall& n) {
  return {f(n.arg(0))};
}

std::vector<OnnxOp> arithmetic_ops();
std::vector<OnnxOp> activation_ops();
std::vector<OnnxOp> shape_ops();
std::vector<OnnxOp> index_ops();
std::vector<OnnxOp> reduce_ops();
std::vector<OnnxOp> window_ops();
std::vector<OnnxOp> norm_ops();
std::vector<OnnxOp> recurrent_ops();
std::vector<OnnxOp> resize_ops();
std::vector<OnnxOp> create_ops();
std::vector<OnnxOp> attention_ops();
std::vector<OnnxOp> sample_ops();
std::vector<OnnxOp> ml_ops();  // of kMlDomain
const char* why_unsupported_ml(std::string_view name);

}  // namespace tapedeck::onnx
