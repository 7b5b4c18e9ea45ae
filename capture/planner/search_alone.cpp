#include <tapedeck/capture/planner/search_alone.h>

#include <tapedeck/kernels/parallel.h>

namespace tapedeck {

struct SearchAlone::Scope {
  kernels::OneThreadScope loops;
};

SearchAlone::SearchAlone() : scope_(std::make_unique<Scope>()) {}
SearchAlone::~SearchAlone() = default;

}  // namespace tapedeck
