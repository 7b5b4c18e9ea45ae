// The list that the PROGRAM blocks of all corpus_*.cpp files add their programs to.
#include <tapedeck/tests/agree/corpus.h>

namespace tapedeck::agree {

std::vector<Entry>& corpus() {
  static std::vector<Entry> entries;
  return entries;
}

}  // namespace tapedeck::agree
