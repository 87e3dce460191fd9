#include <fcntl.h>
#include <unistd.h>

#include "plimsoll/cli/command.h"

int main(int argc, char** argv) {
  // A closed stream must stay closed: otherwise the next opened file would get its number, and the program's output.
  for (int stream = 0; stream <= 2; ++stream)
    if (fcntl(stream, F_GETFD) < 0) static_cast<void>(open("/dev/null", stream == 0 ? O_WRONLY : O_RDONLY));
  return plimsoll::internal::run_program(argc, argv);
}
