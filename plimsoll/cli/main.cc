#include "plimsoll/cli/command.h"

int main(int argc, char** argv) { return plimsoll::run_program(argc, argv); }
