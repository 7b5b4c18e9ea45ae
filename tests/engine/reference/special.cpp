// The reference of `full`, which fills a tensor with one number.
#include <tapedeck/tests/engine/reference.h>

namespace tapedeck::testing {
namespace {

const AddReference full_reference("full", [](const Example& e, const std::vector<Array>&, const std::vector<Type>& out) {
  return std::vector<Array>{blank(out[0], attributes_of<FullAttrs>(e).value)};
});

}  // namespace
}  // namespace tapedeck::testing
