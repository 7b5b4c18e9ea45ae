// Exports every hand-written program with a loop or a branch as an ONNX model and imports it again. The oracle is the eager run
// of the program.
#include <tapedeck/tests/agree/corpus.h>
#include <tapedeck/tests/agree/subject.h>
#include <tapedeck/tests/capture/onnx/there_and_back.h>

#include <tapedeck/capture/file/captured_file.h>
#include <tapedeck/engine/ir/error.h>

#include <set>

namespace tapedeck::agree {
namespace {

class OnnxCorpus : public OnnxExportTest {
 protected:
  // Runs the first replayed step of the imported model.
  void expect_agreement(const Subject& s, const TapeFile& again) const {
    const Graph& g = s.captured.graph;
    std::map<std::string, Tensor> inputs;
    for (ValueId v = 0; v < g.n_inputs; ++v) inputs[g.value_name(v)] = s.inputs[0][static_cast<std::size_t>(v)];
    std::map<std::string, Tensor> got = run_once(again, inputs);
    for (std::size_t i = 0; i < g.outputs.size(); ++i)
      EXPECT_EQ(tapedeck::difference(got.at(g.output_names[i].str()), s.expected[0].outputs[i], 1e-4, 1e-5), "")
          << g.output_names[i].view();
    for (const Update& u : g.updates)
      EXPECT_EQ(tapedeck::difference(got.at(g.value_name(u.state) + ".next"),
                                     s.expected[0].state[static_cast<std::size_t>(u.state - g.n_inputs)], 1e-4, 1e-5),
                "")
          << g.value_name(u.state);
  }
};

TEST_F(OnnxCorpus, ComputesTheSameAgain) {
  std::set<std::string> refused, not_imported;
  int agreed = 0;
  for (const Entry& e : corpus()) {
    if (!made(e.build, 1)->has_branches()) continue;
    SCOPED_TRACE(e.name);
    const Subject s = captured_subject(e.build, 1);
    TapeFile file = tape_of(s.captured);
    for (std::size_t i = 0; i < s.start.size(); ++i)
      file.state[s.captured.graph.value_name(s.captured.graph.n_inputs + static_cast<ValueId>(i))] = s.start[i];
    if (const std::string message = refusal(path(), file); !message.empty()) {
      refused.insert(e.name);
      continue;
    }
    TapeFile again;
    try {
      again = import_onnx(path()).file;
    } catch (const ParseError& error) {
      EXPECT_NE(std::string(error.what()).find("known only when the model runs"), std::string::npos) << error.what();
      not_imported.insert(e.name);
      continue;
    }
    expect_agreement(s, again);
    ++agreed;
  }
  EXPECT_EQ(refused, (std::set<std::string>{"dropout_in_a_scan"}));
  // Gradients of loops without a bound.
  EXPECT_EQ(not_imported,
            (std::set<std::string>{"branch_in_a_loop", "loop_in_a_loop", "loop_that_never_runs", "loop_until_large"}));
  EXPECT_GE(agreed, 10);
}

}  // namespace
}  // namespace tapedeck::agree
