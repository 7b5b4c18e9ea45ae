// Reads the tensors beside the models of tests, runs imported models, and compares numbers.
#pragma once

#include <tapedeck/capture/file/load_executor.h>
#include <tapedeck/capture/onnx/import_onnx.h>
#include <tapedeck/capture/onnx/node_call.h>
#include <tapedeck/capture/onnx/onnx_model.h>
#include <tapedeck/capture/planner/planner.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace tapedeck {

// make_executor() with a plan as the steps of programs get it: the floor, which no test of models reads, is not looked for.
inline Executor executor_of(TapeFile file) {
  if (!file.plan) file.plan = make_plan(file.captured, {.find_floor = false});
  return make_executor(std::move(file));
}

inline std::string onnx_models() { return std::string(TAPEDECK_SOURCE_DIR) + "/tests/capture/onnx/models"; }

// The conformance tests of ONNX: where the package libonnx-testdata installs them, or the folder that the environment names.
inline std::string onnx_conformance_tests() {
  const char* given = std::getenv("TAPEDECK_ONNX_TESTS");
  return given != nullptr ? given : "/usr/share/libonnx-testdata/data";
}

inline Tensor read_pb(const std::string& path) { return onnx::tensor_of(onnx::read_tensor(path), path); }

// The files 0.pb, 1.pb, ... of a folder, or those with a prefix in front of the number.
inline std::vector<Tensor> read_pbs(const std::string& folder, const std::string& prefix = "") {
  std::vector<Tensor> tensors;
  for (int i = 0;; ++i) {
    const std::string path = folder + "/" + prefix + std::to_string(i) + ".pb";
    if (!std::filesystem::exists(path)) return tensors;
    tensors.push_back(read_pb(path));
  }
}

inline std::vector<double> numbers(const Tensor& t) {
  const auto convert = [](const auto& v) { return std::vector<double>(v.begin(), v.end()); };
  switch (t.dtype()) {
    case DType::f64:
      return convert(t.to_vector<double>());
    case DType::i32:
      return convert(t.to_vector<std::int32_t>());
    case DType::i64:
      return convert(t.to_vector<std::int64_t>());
    case DType::u8:
    case DType::boolean:
      return convert(t.to_vector<unsigned char>());
    default:
      return convert(t.to_vector<float>());
  }
}

// Empty if the tensors have one type and |a - b| <= absolute + relative |b| everywhere; else what differs.
inline std::string difference(const Tensor& got, const Tensor& wanted, double relative, double absolute) {
  if (got.type() != wanted.type()) return to_string(got.type()) + " instead of " + to_string(wanted.type());
  const std::vector<double> a = numbers(got), b = numbers(wanted);
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    if (a[i] == b[i] || std::abs(a[i] - b[i]) <= absolute + relative * std::abs(b[i])) continue;
    return "element " + std::to_string(i) + " is " + std::to_string(a[i]) + " instead of " + std::to_string(b[i]);
  }
  return {};
}

}  // namespace tapedeck
