// The recurrent cells for the device, in the emulator, against the CPU kernels, bit for bit.
#include <tapedeck/kernels/cuda/elementwise/list.h>
#include <tapedeck/tests/kernels/cuda/cases.h>
#include <tapedeck/kernels/cuda/elementwise/recurrent.inl>

namespace tapedeck::kernels::cpu {
TAPEDECK_CUDA_ELEMENTWISE(TAPEDECK_DECLARE_CPU, TAPEDECK_DECLARE_CPU)
}  // namespace tapedeck::kernels::cpu

namespace tapedeck::testing::cuda {
namespace {

class CudaCells : public RandomCalls {
 protected:
  // `gates` counts the gates of every operand and result that has more than the state; the others have 1.
  void try_cells(const Case& c, const std::vector<int>& ins, const std::vector<int>& outs, const std::vector<InPlace>& places) {
    for (const DType t : kFloats)
      for (const Sizes& state : {Sizes{1, 1}, {3, 5}, {2, 17}, {7, 64}, {0, 4}, {3, 0}})
        for (std::size_t place = 0; place <= places.size(); ++place) {
          Operands operands;
          for (const int gates : ins) operands.inputs.push_back(draws_.dense(t, {state[0], state[1] * gates}));
          for (const int gates : outs) operands.outputs.push_back(draws_.dense(t, {state[0], state[1] * gates}));
          if (place < places.size()) operands.in_place.push_back(places[place]);
          compare(c, operands);
        }
  }
};

TEST_F(CudaCells, EqualCpu) {
  try_cells(TAPEDECK_CASE(lstm_cell), {4, 1}, {1, 1}, {{1, 1}});
  try_cells(TAPEDECK_CASE(lstm_cell_grad), {4, 1, 1, 1}, {4, 1}, {{0, 0}, {1, 1}, {1, 2}, {1, 3}});
  try_cells(TAPEDECK_CASE(gru_cell), {3, 3, 1}, {1}, {{0, 2}});
  try_cells(TAPEDECK_CASE(gru_cell_grad), {3, 3, 1, 1}, {3, 3, 1}, {{0, 0}, {1, 1}, {2, 2}, {2, 3}});
}

}  // namespace
}  // namespace tapedeck::testing::cuda
