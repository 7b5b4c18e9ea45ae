// References of what advances from step to step.
#include <tapedeck/tests/engine/reference.h>

namespace tapedeck::testing {
namespace {

const AddReference counters[] = {
    {"count_next", [](const Example&, const std::vector<Array>& x, const std::vector<Type>&) {
       return std::vector<Array>{{x[0].type, {x[0].v[0] + 1}}};
     }},
    {"rng_next", [](const Example&, const std::vector<Array>& x, const std::vector<Type>&) {  // seed, step
       return std::vector<Array>{{x[0].type, {x[0].v[0], x[0].v[1] + 1}}};
     }},
};

}  // namespace
}  // namespace tapedeck::testing
