/* Loads a library by its path, as interpreters and plug-in hosts do, and looks at what it takes of the static
   thread-local memory that all libraries of a process share (512 bytes are left for late ones by default).
   usage: load_library PATH MOST_BYTES

   Linked with nothing of ours. Exits 1, saying why, when the library cannot be loaded or wants more than MOST_BYTES. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct Search {
  const char* path;
  long bytes; /* -1: the library was not found among those that are loaded. */
};

static int look(struct dl_phdr_info* info, size_t size, void* data) {
  struct Search* search = data;
  (void)size;
  if (strcmp(info->dlpi_name, search->path) != 0) return 0;
  search->bytes = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i)
    if (info->dlpi_phdr[i].p_type == PT_TLS) search->bytes = (long)info->dlpi_phdr[i].p_memsz;
  return 1;
}

int main(int argc, char** argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: load_library PATH MOST_BYTES\n");
    return 2;
  }
  if (dlopen(argv[1], RTLD_NOW) == NULL) {
    fprintf(stderr, "load_library: %s\n", dlerror());
    return 1;
  }
  struct Search search = {argv[1], -1};
  dl_iterate_phdr(look, &search);
  const long most = atol(argv[2]);
  printf("load_library: %s has %ld thread-local bytes, %ld are allowed\n", argv[1], search.bytes, most);
  return search.bytes < 0 || search.bytes > most;
}
