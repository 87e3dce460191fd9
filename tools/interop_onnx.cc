// Saves one model of each family of layers as ONNX, with an input and what the model makes of it, for
// tools/interop_onnx. usage: interop_onnx FOLDER
#include <cstdio>

#include "plimsoll/model/onnx/exported_models_testing.h"
#include "plimsoll/plimsoll.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  namespace pl = plimsoll;
  const std::string folder = argv[1];
  for (const pl::ExportedModel& each : pl::exported_models()) {
    pl::save_onnx(each.model, folder + "/" + each.name + ".onnx");
    pl::TensorTree tree;
    for (std::size_t i = 0; i < each.inputs.size(); ++i) tree.insert("x" + std::to_string(i), each.inputs[i]);
    const std::vector<pl::Tensor> outputs = each.model.predict_all(each.inputs);
    for (std::size_t i = 0; i < outputs.size(); ++i) tree.insert("y" + std::to_string(i), outputs[i]);
    pl::save_npz(folder + "/" + each.name + ".npz", tree);
    std::printf("%s\n", each.name.c_str());
  }
}
