// The three vendor libraries: their file names, and one LazyTable for each.
#include <tapedeck/kernels/cuda/dnn_api.h>
#include <tapedeck/kernels/cuda/lt_api.h>
#include <tapedeck/kernels/cuda/rtc_api.h>

namespace tapedeck::kernels::cuda {
namespace {

#define TAPEDECK_TABLE LtApi
constexpr TableEntry kLtEntries[] = {TAPEDECK_LT_FUNCTIONS(TAPEDECK_TABLE_ENTRY)};
#undef TAPEDECK_TABLE
#define TAPEDECK_TABLE DnnApi
constexpr TableEntry kDnnEntries[] = {TAPEDECK_DNN_FUNCTIONS(TAPEDECK_TABLE_ENTRY)};
#undef TAPEDECK_TABLE
#define TAPEDECK_TABLE RtcApi
constexpr TableEntry kRtcEntries[] = {TAPEDECK_RTC_FUNCTIONS(TAPEDECK_TABLE_ENTRY)};
#undef TAPEDECK_TABLE

// The tables are never destroyed, because a thread that still runs at exit may use them.
LazyTable<LtApi>& lt_table() {
  static auto* table = new LazyTable<LtApi>({"cuBLASLt", "libcublasLt.so.13", "nvidia/cu13/lib"}, kLtEntries);
  return *table;
}
LazyTable<DnnApi>& dnn_table() {
  static auto* table = new LazyTable<DnnApi>({"cuDNN", "libcudnn.so.9", "nvidia/cudnn/lib"}, kDnnEntries);
  return *table;
}
LazyTable<RtcApi>& rtc_table() {
  static auto* table = new LazyTable<RtcApi>({"NVRTC", "libnvrtc.so.13", "nvidia/cu13/lib"}, kRtcEntries);
  return *table;
}

}  // namespace

const LtApi* lt_api(std::string* why) { return lt_table().get(why); }
const LtApi* set_fake(const LtApi* fake) { return lt_table().set_fake(fake); }
const DnnApi* dnn_api(std::string* why) { return dnn_table().get(why); }
const DnnApi* set_fake(const DnnApi* fake) { return dnn_table().set_fake(fake); }
const RtcApi* rtc_api(std::string* why) { return rtc_table().get(why); }
const RtcApi* set_fake(const RtcApi* fake) { return rtc_table().set_fake(fake); }

}  // namespace tapedeck::kernels::cuda
