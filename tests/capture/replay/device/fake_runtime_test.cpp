// Tests that the fake device sees each breach of the rules; the tests of replays rely on it.
#include <tapedeck/tests/capture/replay/device/fake_runtime.h>

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace tapedeck::test {
namespace {

class Fake : public ::testing::Test {
 protected:
  Fake() {
    fake.create_stream(&stream);
    fake.allocate(64, &memory);
    fake.allocate_pinned(64, &pinned);
  }

  // Returns what was noted last, and forgets it.
  void expect_problem(const char* words) {
    ASSERT_FALSE(fake.problems().empty()) << words;
    EXPECT_NE(fake.problems().back().find(words), std::string::npos) << fake.problems().back();
  }

  // relu of four numbers.
  void call(void* from, void* to) {
    View views[2];
    for (View& v : views) v.rank = 1, v.sizes[0] = 4, v.strides[0] = 1;
    views[0].data = from;
    views[1].data = to;
    KernelCall call;
    call.inputs = views;
    call.outputs = views + 1;
    call.n_inputs = call.n_outputs = 1;
    call.stream = stream;
    call.fault = new (pinned) KernelFault;
    fake.run(fake.kernel("relu")->kernel, call);
  }

  FakeRuntime fake;
  kernels::cuda::Stream stream = nullptr;
  void *memory = nullptr, *pinned = nullptr;
};

TEST_F(Fake, RunsWorkWhenItIsWaitedFor) {
  float numbers[4] = {-1, 2, -3, 4}, results[4] = {9, 9, 9, 9};
  fake.copy_to_device(memory, numbers, 16, stream);
  call(memory, static_cast<char*>(memory) + 16);
  fake.copy_to_host(results, static_cast<char*>(memory) + 16, 16, stream);
  EXPECT_EQ(results[1], 9);
  EXPECT_EQ(fake.synchronize(stream), nullptr);
  EXPECT_EQ(results[0], 0);
  EXPECT_EQ(results[1], 2);
  EXPECT_TRUE(fake.problems().empty());
}

TEST_F(Fake, NotesBytesOutsideOfAllocations) {
  float number = 1;
  fake.copy_to_device(static_cast<char*>(memory) + 61, &number, 4, stream);
  expect_problem("copy_to_device: 4 bytes are in no allocation");
  fake.copy_to_host(&number, &number, 4, stream);
  expect_problem("copy_to_host: 4 bytes are in no allocation");
  float on_host[4] = {};
  call(on_host, memory);
  expect_problem("relu: 16 bytes are in no allocation");
}

TEST_F(Fake, NotesWhatACaptureDoesNotAllow) {
  fake.begin_capture(stream);
  void* more = nullptr;
  EXPECT_NE(fake.allocate(8, &more), nullptr);
  expect_problem("allocate while a stream is captured");
  EXPECT_NE(fake.free(memory), nullptr);
  expect_problem("free while a stream is captured");
  EXPECT_NE(fake.synchronize(stream), nullptr);
  expect_problem("synchronize while a stream is captured");
  float number = 1;
  EXPECT_NE(fake.copy_to_device(memory, &number, 4, stream), nullptr);
  expect_problem("from pageable memory is captured");
}

TEST_F(Fake, NotesMemoryThatIsFreedTooEarly) {
  call(memory, memory);
  fake.free(memory);
  expect_problem("memory is freed while work is waiting");
  fake.synchronize(stream);
  expect_problem("relu: 16 bytes are in no allocation");
}

TEST_F(Fake, NotesAGraphWhoseMemoryIsGone) {
  fake.begin_capture(stream);
  call(memory, memory);
  kernels::cuda::Graph graph = nullptr;
  kernels::cuda::GraphExec exec = nullptr;
  fake.end_capture(stream, &graph);
  fake.instantiate(graph, &exec);
  EXPECT_EQ(fake.counts.kernels, 0) << "a capture runs nothing";
  fake.launch(exec, stream);
  fake.synchronize(stream);
  EXPECT_EQ(fake.counts.kernels, 1);
  EXPECT_TRUE(fake.problems().empty());
  fake.free(memory);
  fake.launch(exec, stream);
  expect_problem("relu: 16 bytes are in no allocation");
  EXPECT_FALSE(fake.at_rest());
}

}  // namespace
}  // namespace tapedeck::test
