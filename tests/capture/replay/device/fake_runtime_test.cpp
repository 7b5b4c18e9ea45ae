// Tests that the fake device sees each breach of the rules; the tests of replays rely on it.
#include <tapedeck/tests/capture/replay/device/fake_runtime.h>

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <thread>

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
  void call(void* from, void* to, kernels::cuda::Stream on = nullptr) {
    View views[2];
    for (View& v : views) v.rank = 1, v.sizes[0] = 4, v.strides[0] = 1;
    views[0].data = from;
    views[1].data = to;
    KernelCall call;
    call.inputs = views;
    call.outputs = views + 1;
    call.n_inputs = call.n_outputs = 1;
    call.stream = on ? on : stream;
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

// ---- streams and events ----

class FakeStreams : public Fake {
 protected:
  FakeStreams() {
    fake.create_stream(&other);
    fake.create_event(&event);
  }
  void* second_half() const { return static_cast<char*>(memory) + 32; }

  kernels::cuda::Stream other = nullptr;
  kernels::cuda::Event event = nullptr;
};

TEST_F(FakeStreams, NotesARaceOfAWriteAndARead) {
  call(memory, second_half());
  call(second_half(), memory, other);
  expect_problem("a race: relu on stream 1");
}

TEST_F(FakeStreams, AnOpInPlaceIsNoRace) {
  call(memory, memory);
  call(memory, memory);
  EXPECT_TRUE(fake.problems().empty());
}

TEST_F(FakeStreams, ReadsOfTheSameBytesAreNoRace) {
  call(memory, static_cast<char*>(memory) + 16);
  call(memory, static_cast<char*>(memory) + 32, other);
  EXPECT_TRUE(fake.problems().empty());
}

TEST_F(FakeStreams, NotesAWriteThatPassesARead) {
  call(memory, static_cast<char*>(memory) + 16);
  call(static_cast<char*>(memory) + 48, memory, other);
  expect_problem("a race: relu on stream 1 writes bytes that relu on stream 0 reads");
}

TEST_F(FakeStreams, AnEventOrdersTwoStreams) {
  float numbers[4] = {1, -1, 1, -1}, results[4] = {};
  fake.copy_to_device(memory, numbers, 16, stream);
  call(memory, second_half());
  fake.record(event, stream);
  fake.wait_on_device(other, event);
  call(second_half(), memory, other);
  fake.copy_to_host(results, memory, 16, other);
  bool done = true;
  fake.is_done(event, &done);
  EXPECT_FALSE(done);
  fake.synchronize(other);
  EXPECT_EQ(results[0], 1) << "the other stream has run what the event stands behind";
  fake.is_done(event, &done);
  EXPECT_TRUE(done);
  EXPECT_TRUE(fake.problems().empty()) << fake.problems().front();
}

TEST_F(FakeStreams, AnEventOrdersNothingThatComesAfterIt) {
  fake.record(event, stream);
  call(memory, second_half());
  fake.wait_on_device(other, event);
  call(second_half(), memory, other);
  expect_problem("a race");
}

TEST_F(FakeStreams, OrderPassesFromStreamToStream) {
  kernels::cuda::Stream third = nullptr;
  kernels::cuda::Event second = nullptr;
  fake.create_stream(&third);
  fake.create_event(&second);
  call(memory, second_half());
  fake.record(event, stream);
  fake.wait_on_device(other, event);
  fake.record(second, other);
  fake.wait_on_device(third, second);
  call(second_half(), memory, third);
  EXPECT_TRUE(fake.problems().empty()) << fake.problems().front();
}

TEST_F(FakeStreams, AWaitOfTheHostOrdersItsOwnThread) {
  call(memory, second_half());
  fake.record(event, stream);
  fake.wait_on_host(event);
  call(second_half(), memory, other);
  EXPECT_TRUE(fake.problems().empty()) << fake.problems().front();
  std::thread([&] { call(second_half(), memory, stream); }).join();
  expect_problem("a race");
}

TEST_F(FakeStreams, NotesEventsInACapture) {
  fake.begin_capture(stream);
  EXPECT_NE(fake.record(event, stream), nullptr);
  expect_problem("an event is recorded while its stream is captured");
  EXPECT_NE(fake.wait_on_device(stream, event), nullptr);
  expect_problem("a captured stream waits for an event outside");
  EXPECT_NE(fake.wait_on_host(event), nullptr);
  expect_problem("wait_on_host while a stream is captured");
}

TEST_F(FakeStreams, NotesAStreamThatGoesBeforeItsWork) {
  call(memory, second_half());
  fake.destroy_stream(stream);
  expect_problem("a stream is destroyed while work is waiting");
}

}  // namespace
}  // namespace tapedeck::test
