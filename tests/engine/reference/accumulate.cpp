// References of ops that add to a sum: add_n, addcmul and addmm.
#include <tapedeck/tests/engine/reference.h>

namespace tapedeck::testing {
namespace {

using Args = const std::vector<double>&;

const AddReference add_n_reference("add_n", elementwise([](Args x) {
                                     double sum = 0;
                                     for (double v : x) sum += v;
                                     return sum;
                                   }));

const AddReference addcmul_reference("addcmul", elementwise([](Args x) { return x[0] + x[1] * x[2]; }));

const AddReference addmm_reference("addmm", [](const Example& e, const std::vector<Array>& x, const std::vector<Type>& out) {
  Array y = references().at("matmul").run(e, {x[1], x[2]}, out)[0];
  for (std::size_t i = 0; i < y.v.size(); ++i) y.v[i] += x[0].v[i];
  return std::vector<Array>{y};
});

}  // namespace
}  // namespace tapedeck::testing
