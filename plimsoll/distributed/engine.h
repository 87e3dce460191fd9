/* What an engine's library offers: libplimsoll_<name>.so exports plimsoll_engine(). Plain C, so that the library can be
 * built by another compiler, against another MPI, and loaded only when somebody asks for it.
 *
 * Every function returns 0, or else has written a text for people. A transfer's memory stays in place until test() says
 * that it is done. One thread at a time. */
#ifndef PLIMSOLL_DISTRIBUTED_ENGINE_H
#define PLIMSOLL_DISTRIBUTED_ENGINE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PLIMSOLL_ENGINE_VERSION 1

typedef struct PlimsollEngineError {
  char text[512];
  int is_gone; /* The other process is gone: start the job again. */
} PlimsollEngineError;

typedef struct PlimsollEngine {
  int version;
  const char* name;
  /* Joins the job; a second time it gives the same numbers. */
  int (*start)(int* rank, int* size, PlimsollEngineError* error);
  int (*host)(char* name, size_t size);
  int (*send)(int to, int tag, const void* bytes, size_t size, void** transfer, PlimsollEngineError* error);
  int (*receive)(int from, int tag, void* bytes, size_t size, void** transfer, PlimsollEngineError* error);
  int (*test)(void* transfer, int* is_done, PlimsollEngineError* error);
  void (*abort)(int exit_code);
  void (*finish)(void);
} PlimsollEngine;

/* Null when it has no such version. */
typedef const PlimsollEngine* (*PlimsollEngineFunction)(int version);

#ifdef __cplusplus
}
#endif

#endif
