// ONNX's own test suite, as Debian's package libonnx-testdata has it: every case, by its expected outputs.
//
// Cases pass, are refused as unsupported, or are wrong; none may be wrong. Every passing case runs again at its
// smallest budget (the same bits), and is refused with a byte less. PLIMSOLL_ONNX_SUITE names another folder of the
// same form, PLIMSOLL_ONNX_LIST=1 prints what is unsupported.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "plimsoll/base/error.h"
#include "plimsoll/base/wire.h"
#include "plimsoll/model/onnx/onnx_file.h"
#include "plimsoll/model/onnx/onnx_layer.h"
#include "plimsoll/model/onnx/onnx_model.h"
#include "plimsoll/tensor/host_access.h"
#include "plimsoll/tensor/tidy.h"

namespace plimsoll {
namespace {

namespace fs = std::filesystem;

fs::path suite() {
  if (const char* given = std::getenv("PLIMSOLL_ONNX_SUITE")) return given;
  return "/usr/share/libonnx-testdata/data";
}

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value && *value == '1';
}

Tensor read_tensor(const fs::path& path) {
  const auto file = OnnxFile::open(path);
  return file->tensor(parse_onnx_tensor(file->bytes(), path.native()));
}

// Within what the suite allows: 1e-3 of the value and 1e-7, infinities and NaN alike.
std::string difference(const Tensor& got, const Tensor& wanted) {
  if (got.dtype() != wanted.dtype())
    return std::string("dtype ") + dtype_name(got.dtype()) + ", not " + dtype_name(wanted.dtype());
  if (!(got.shape() == wanted.shape()))
    return "shape " + got.shape().to_string() + ", not " + wanted.shape().to_string();
  const std::vector<double> a = got.cast(f64).to_vector<double>(), b = wanted.cast(f64).to_vector<double>();
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    if (a[i] == b[i]) continue;
    if (!(std::abs(a[i] - b[i]) <= 1e-5 + 1e-3 * std::abs(b[i]))) {
      std::ostringstream text;
      text << "element " << i << " is " << a[i] << ", not " << b[i];
      return text.str();
    }
  }
  return "";
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && a.dtype() == b.dtype() &&
         (a.nbytes() == 0 || std::memcmp(HostRead(a).bytes(), HostRead(b).bytes(), a.nbytes()) == 0);
}

struct Counts {
  std::size_t pass = 0, unsupported = 0, wrong = 0, controlled = 0, gated = 0;
  std::map<std::string, std::vector<std::string>> reasons;
  std::vector<std::string> faults;
};

// Files of one data set: "input_0.pb" belongs to the graph's input 0.
std::vector<Tensor> read_all(const fs::path& folder, const char* kind, std::size_t count) {
  std::vector<Tensor> tensors;
  for (std::size_t i = 0; i < count; ++i) {
    const fs::path path = folder / (std::string(kind) + "_" + std::to_string(i) + ".pb");
    tensors.push_back(fs::exists(path) ? read_tensor(path) : Tensor());
  }
  return tensors;
}

void check_gate(const OnnxModel& model, const std::map<std::string, Tensor>& inputs, const std::vector<Tensor>& results,
                const std::string& name, Counts& counts) {
  const std::size_t gate = model.forecast(inputs).smallest_budget;
  const std::vector<Tensor> again = model.predict(inputs, {.budget = gate});
  for (std::size_t i = 0; i < results.size(); ++i)
    if (!same_bits(results[i], again[i])) counts.faults.push_back(name + ": other bits at the smallest budget");
  bool refused = false;
  try {
    model.predict(inputs, {.budget = gate - 1});
  } catch (const OutOfMemory&) {
    refused = true;
  }
  if (!refused) counts.faults.push_back(name + ": runs with a byte less than the smallest budget");
  ++counts.gated;
}

void run_case(const fs::path& folder, Counts& counts) {
  const std::string name = folder.filename().string();
  const TidyScope tensors;
  try {
    const OnnxModel model(folder / "model.onnx");
    const std::vector<onnx::ValueInfo>& declared = model.layer()->graph().model().graph.inputs;
    bool right = true, controlled = true, any = false;
    for (int set = 0;; ++set) {
      const fs::path data = folder / ("test_data_set_" + std::to_string(set));
      if (!fs::exists(data)) break;
      any = true;
      const std::vector<Tensor> given = read_all(data, "input", declared.size());
      const std::vector<Tensor> wanted = read_all(data, "output", model.outputs().size());
      std::map<std::string, Tensor> inputs;
      for (std::size_t i = 0; i < given.size(); ++i)
        if (!given[i].is_empty_handle()) inputs[declared[i].name] = given[i];
      const std::vector<Tensor> results = model.predict(inputs);
      for (std::size_t i = 0; i < results.size(); ++i) {
        if (wanted[i].is_empty_handle()) continue;
        const std::string fault = difference(results[i], wanted[i]);
        if (!fault.empty()) {
          counts.faults.push_back(name + ": output " + std::to_string(i) + ": " + fault);
          right = false;
        }
        // The control: the comparison must notice one added to every element.
        const Tensor other = results[i].dtype() == boolean ? !results[i] : results[i] + 1;
        controlled = controlled && (results[i].size() == 0 || !difference(other, wanted[i]).empty());
      }
      if (right) check_gate(model, inputs, results, name, counts);
    }
    if (!any) return;
    ++(right ? counts.pass : counts.wrong);
    counts.controlled += right && controlled;
  } catch (const Unsupported& error) {
    ++counts.unsupported;
    const std::string text = error.what();
    EXPECT_NE(text.find("unsupported"), std::string::npos) << text;
    std::string reason = text.substr(text.find("\": ") == std::string::npos ? 0 : text.find("\": ") + 3);
    reason = reason.substr(0, reason.find(", node"));
    counts.reasons[reason].push_back(name);
  } catch (const std::exception& error) {
    ++counts.wrong;
    counts.faults.push_back(name + ": " + error.what());
  }
}

Counts run_kind(const char* kind) {
  Counts counts;
  std::vector<fs::path> cases;
  for (const auto& entry : fs::directory_iterator(suite() / kind))
    if (fs::exists(entry.path() / "model.onnx")) cases.push_back(entry.path());
  std::sort(cases.begin(), cases.end());
  for (const fs::path& folder : cases) run_case(folder, counts);
  std::printf(
      "onnx %s: %zu pass (%zu of them fail the control, as they should), %zu unsupported, %zu wrong, %zu at the gate\n",
      kind, counts.pass, counts.controlled, counts.unsupported, counts.wrong, counts.gated);
  for (const std::string& fault : counts.faults) ADD_FAILURE() << fault;
  if (is_set("PLIMSOLL_ONNX_LIST"))
    for (const auto& [reason, names] : counts.reasons) {
      std::printf("  %3zu %s:", names.size(), reason.c_str());
      for (const std::string& name : names) std::printf(" %s", name.c_str());
      std::printf("\n");
    }
  EXPECT_EQ(counts.wrong, 0u);
  EXPECT_GE(counts.gated, counts.pass);
  return counts;
}

class OnnxSuite : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(suite())) GTEST_SKIP() << "no ONNX test data; run tools/setup onnx (package libonnx-testdata)";
  }
};

TEST_F(OnnxSuite, NodeCasesPassOrAreRefused) {
  const Counts counts = run_kind("node");
  EXPECT_GE(counts.pass, 852u);
  EXPECT_GE(counts.controlled, 850u);
}
TEST_F(OnnxSuite, ConvertedModelsPass) { EXPECT_GE(run_kind("pytorch-converted").pass, 82u); }
TEST_F(OnnxSuite, OperatorModelsPass) { EXPECT_GE(run_kind("pytorch-operator").pass, 35u); }
TEST_F(OnnxSuite, SimpleModelsPassOrAreRefused) { EXPECT_GE(run_kind("simple").pass, 15u); }

}  // namespace
}  // namespace plimsoll
