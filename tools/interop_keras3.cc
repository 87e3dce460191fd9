// For tools/interop_keras3: loads a model in Keras' file and saves it again.
#include <iostream>

#include "plimsoll/plimsoll.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    plimsoll::save_keras(plimsoll::load_keras(argv[1]), argv[2]);
  } catch (const plimsoll::Error& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
  return 0;
}
