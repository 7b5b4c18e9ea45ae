// Tests the texts of faults: those of the device's numbers are the words of the CPU kernels.
#include <tapedeck/kernels/cuda/device_fault.h>
#include <tapedeck/kernels/cuda/fault_text.h>

#include <gtest/gtest.h>

namespace tapedeck::kernels {
namespace {

TEST(FaultText, NumbersOfTheDeviceBecomeTexts) {
  KernelFault fault;
  EXPECT_EQ(cuda::fault_text(fault), nullptr);
  emulated::report_fault(&fault, emulated::Fault::index_out_of_range, 7);
  emulated::report_fault(&fault, emulated::Fault::label_out_of_range, 8);
  EXPECT_STREQ(cuda::fault_text(fault), "index out of range");
  EXPECT_EQ(fault.value, 7) << "the first report stays";
  KernelFault label;
  emulated::report_fault(&label, emulated::Fault::label_out_of_range, -1);
  EXPECT_STREQ(cuda::fault_text(label), "label out of range");
  EXPECT_EQ(label.value, -1);
}

TEST(FaultText, TextsOfTheHostStay) {
  KernelFault fault;
  fault.report("a launch failed", 98);
  EXPECT_STREQ(cuda::fault_text(fault), "a launch failed");
}

}  // namespace
}  // namespace tapedeck::kernels
