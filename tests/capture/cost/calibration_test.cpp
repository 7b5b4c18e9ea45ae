// Tests calibration: rates fitted to points made from known rates, files of rates written, read and refused, and a real
// measurement of a few ops.
#include <tapedeck/capture/cost/calibration.h>

#include <tapedeck/capture/cost/machine.h>
#include <tapedeck/capture/measure/calibrate.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/engine/ir/error.h>

#include <tapedeck/tests/capture/temporary_folder.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>

namespace tapedeck {
namespace {

CostPoint point(const OpRates& r, double flops, double bytes) {
  return {flops, bytes,
          r.call_us + flops * r.us_per_flop + bytes * r.us_per_byte + std::max(bytes - kNearBytes, 0.0) * r.us_per_far_byte};
}

TEST(Calibration, FitFindsTheRatesThatMadeThePoints) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    const OpRates made = {.call_us = 0.1 + random() % 10 * 0.3,
                          .us_per_flop = random() % 3 * 1e-5,
                          .us_per_byte = 1e-5 * (1 + random() % 9),
                          .us_per_far_byte = random() % 3 * 2e-5};
    std::vector<CostPoint> points;
    for (const double bytes : {200.0, 5e4, 4e5, 3e6, 1e7})
      for (const double intensity : {0.25, 4.0, 100.0}) points.push_back(point(made, bytes * intensity, bytes));
    const auto fitted = fit_rates(points);
    ASSERT_TRUE(fitted);
    EXPECT_NEAR(fitted->call_us, made.call_us, 1e-4);
    EXPECT_NEAR(fitted->us_per_flop, made.us_per_flop, 1e-8);
    EXPECT_NEAR(fitted->us_per_byte, made.us_per_byte, 1e-8);
    EXPECT_NEAR(fitted->us_per_far_byte, made.us_per_far_byte, 1e-8);
    EXPECT_EQ(fitted->points, 15);
  }
}

// Brute force: no change of a single rate gives a better fit.
TEST(Calibration, FitIsTheBestAmongItsNeighbours) {
  std::mt19937 random(11);
  const auto uniform = [&] { return static_cast<double>(random() % 10000) / 10000; };
  const auto error = [](const std::vector<CostPoint>& points, const OpRates& r) {
    double sum = 0;
    for (const CostPoint& p : points) {
      const double off = std::log(point(r, p.flops, p.bytes).us / p.us);
      sum += off * off;
    }
    return sum;
  };
  for (int round = 0; round < 20; ++round) {
    std::vector<CostPoint> points;
    for (int i = 0; i < 12; ++i) points.push_back({1e6 * uniform(), 4e6 * uniform() + 100, 0.5 + 300 * uniform()});
    const auto fitted = fit_rates(points);
    ASSERT_TRUE(fitted);
    const double best = error(points, *fitted);
    for (double OpRates::*rate : {&OpRates::call_us, &OpRates::us_per_flop, &OpRates::us_per_byte, &OpRates::us_per_far_byte})
      for (const double factor : {0.0, 0.1, 0.5, 0.9, 0.99, 1.01, 1.1, 2.0, 10.0}) {
        OpRates other = *fitted;
        other.*rate *= factor;
        EXPECT_GE(error(points, other), best * (1 - 1e-6));
      }
  }
}

TEST(Calibration, PointsThatCarryNoRatesGiveNone) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(fit_rates({}));
  EXPECT_FALSE(fit_rates(std::vector<CostPoint>{{0, 1e6, 5}})) << "one point";
  EXPECT_FALSE(fit_rates(std::vector<CostPoint>{{0, 100, 5}, {0, 200, 5}})) << "none large";
  EXPECT_FALSE(fit_rates(std::vector<CostPoint>{{0, 1e6, nan}, {nan, 1e6, 5}, {0, 1e6, -5}}));
  const auto zero = fit_rates(std::vector<CostPoint>{{0, 1e6, 0}, {0, 2e6, 0}});
  ASSERT_TRUE(zero);
  EXPECT_TRUE(std::isfinite(zero->call_us) && std::isfinite(zero->us_per_byte));
}

Calibration sample_calibration() {
  Calibration c;
  c.machine = machine_name();
  c.program = calibrate({.quick = true, .ops = {"neg"}}).program;
  c.quick = true;
  c.ops["add"] = {1, 0.25, 0, 3.5e-5, 1e-5, 7};
  c.ops["acme.\"odd\""] = {2, 0, 1e-6, 0, 0, 3};
  c.kin_ratio = {0.5, 2, 1.25};
  return c;
}

TEST(Calibration, TextComesBack) {
  EXPECT_EQ(parse_calibration(calibration_to_json(sample_calibration())), sample_calibration());
}

TEST(Calibration, FileComesBackAndFoldersAreMade) {
  const TemporaryFolder folder;
  const std::string path = folder.file("a/b/c.json");
  std::string why;
  EXPECT_FALSE(load_calibration(path, &why));
  EXPECT_EQ(why, "") << "not being there is no fault";
  save_calibration(path, sample_calibration());
  EXPECT_EQ(load_calibration(path, &why), sample_calibration()) << why;
}

TEST(Calibration, WhatCannotBeBelievedIsLeftAndSaidSo) {
  const TemporaryFolder folder;
  const std::string path = folder.file("c.json");
  const auto reason = [&](const std::string& text) {
    write_all(path, text);
    std::string why;
    EXPECT_FALSE(load_calibration(path, &why)) << text;
    EXPECT_NE(why.find(path), why.npos);
    EXPECT_NE(why.find("tapedeck calibrate"), why.npos) << why;
    return why;
  };
  const auto changed = [](const std::string& from, const std::string& to) {
    std::string text = calibration_to_json(sample_calibration());
    const std::size_t at = text.find(from);
    EXPECT_NE(at, text.npos) << from;
    return text.replace(at, from.size(), to);
  };
  EXPECT_NE(reason("").find("not a readable calibration"), std::string::npos);
  EXPECT_NE(reason("garbage").find("not JSON"), std::string::npos);
  EXPECT_NE(reason(changed("\"call_us\":0.25", "\"call_us\":-1")).find("op \"add\": call_us is -1, on line 3"),
            std::string::npos);
  EXPECT_NE(reason(changed("\"call_us\":0.25", "\"call_us\":\"nan\"")).find("call_us is nan, on line 3"), std::string::npos);
  EXPECT_NE(reason(changed("\"us_per_byte\":3.5e-05", "\"us_per_byte\":1e9")).find("us_per_byte is"), std::string::npos);
  EXPECT_NE(reason(changed("\"elementwise\":0.5", "\"elementwise\":\"inf\"")).find("elementwise is inf, on line 1"),
            std::string::npos);
  EXPECT_NE(reason(changed("\"call_us\":0.25", "\"call_us\":1e999")).find("a number that is too large, on line 3"),
            std::string::npos);
  EXPECT_NE(reason(changed("calibration/1", "calibration/2")).find("schema"), std::string::npos);
  Calibration c = sample_calibration();
  c.machine = "another x 64";
  EXPECT_NE(reason(calibration_to_json(c)).find("measured on another machine (\"another x 64\")"), std::string::npos);
  c = sample_calibration();
  c.program = "0.0.0";
  EXPECT_NE(reason(calibration_to_json(c)).find("measured by version \"0.0.0\""), std::string::npos);
}

struct Environment {
  Environment(const char* name, const char* value)
      : name(name), before(std::getenv(name) ? std::getenv(name) : ""), was_set(std::getenv(name)) {
    value ? ::setenv(name, value, 1) : ::unsetenv(name);
  }
  ~Environment() { was_set ? ::setenv(name, before.c_str(), 1) : ::unsetenv(name); }
  const char* name;
  std::string before;
  bool was_set;
};

TEST(Calibration, PathFollowsTheEnvironment) {
  const Environment home("HOME", "/home/u");
  {
    const Environment chosen("TAPEDECK_CALIBRATION", "/some/where.json"), cache("XDG_CACHE_HOME", "/cache");
    EXPECT_EQ(calibration_path(), "/some/where.json");
  }
  {
    const Environment off("TAPEDECK_CALIBRATION", "off"), cache("XDG_CACHE_HOME", "/cache");
    EXPECT_EQ(calibration_path(), "");
  }
  const Environment none("TAPEDECK_CALIBRATION", nullptr);
  {
    const Environment cache("XDG_CACHE_HOME", "/cache");
    EXPECT_EQ(calibration_path(), "/cache/tapedeck/calibration.json");
  }
  {
    const Environment relative("XDG_CACHE_HOME", "cache");
    EXPECT_EQ(calibration_path(), "/home/u/.cache/tapedeck/calibration.json");
  }
  const Environment cache("XDG_CACHE_HOME", nullptr);
  EXPECT_EQ(calibration_path(), "/home/u/.cache/tapedeck/calibration.json");
  const Environment homeless("HOME", nullptr);
  EXPECT_EQ(calibration_path(), "");
}

// ---- real measurements ----

TEST(Calibrate, MeasuresSeveralSizesOfAnOp) {
  CalibrateOptions options;
  options.quick = true;
  options.op_seconds = 1000;  // long enough for every size, even on a busy machine
  options.ops = {"matmul", "add"};
  std::vector<double> progress;
  options.progress = [&](double done) { progress.push_back(done); };
  std::vector<CalibrationPoint> points;
  const Calibration c = calibrate(options, &points);
  EXPECT_EQ(progress, (std::vector<double>{0.5, 1}));
  EXPECT_EQ(c.machine, machine_name());
  for (const char* name : {"matmul", "add"}) {
    ASSERT_TRUE(c.ops.count(name)) << name;
    const OpRates& r = c.ops.at(name);
    EXPECT_GE(r.points, 3);
    EXPECT_EQ(r.version, find_op(name)->version);
    EXPECT_GT(r.us_per_flop + r.us_per_byte + r.us_per_far_byte, 0) << "larger operands take longer";
  }
  std::int64_t large = 0;
  for (const CalibrationPoint& p : points) large += p.cost.bytes > 1e5;
  EXPECT_GE(large, 2);
}

TEST(Calibrate, CanBeStopped) {
  const std::atomic<bool> stop{true};
  CalibrateOptions options;
  options.cancel = &stop;
  EXPECT_THROW(calibrate(options), Cancelled);
}

// On a busy machine the time may be over after the first size. Even then each op must get as many sizes as its rates need.
TEST(Calibrate, TimeThatIsShortLeavesNoOpOut) {
  const Calibration c = calibrate({.op_seconds = 1e-9, .ops = {"matmul", "add", "softmax"}});
  for (const char* op : {"matmul", "add", "softmax"}) EXPECT_TRUE(c.ops.count(op)) << op;
}

TEST(Calibrate, RefusesWhatItCannotMeasure) {
  CalibrateOptions options;
  options.ops = {"no_such_op"};
  EXPECT_THROW(calibrate(options), UsageError);
  options.ops = {"opaque"};
  EXPECT_THROW(calibrate(options), UsageError);
}

}  // namespace
}  // namespace tapedeck
