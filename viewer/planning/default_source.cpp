#include <tapedeck/viewer/planning/default_source.h>

namespace tapedeck::viewer {

MakeSource& default_source() {
  static MakeSource source = search_plans;
  return source;
}

}  // namespace tapedeck::viewer
