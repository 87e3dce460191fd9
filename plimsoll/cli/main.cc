#include <fcntl.h>
#include <unistd.h>

#include "plimsoll/cli/command.h"

int main(int argc, char** argv) {
  // A stream that is closed stays so: else the next file that is opened would get its number, and what is printed.
  for (int stream = 0; stream <= 2; ++stream)
    if (fcntl(stream, F_GETFD) < 0) static_cast<void>(open("/dev/null", stream == 0 ? O_WRONLY : O_RDONLY));
  return plimsoll::run_program(argc, argv);
}
