// The MPI engine: libplimsoll_mpi.so. It uses only MPI_Isend, MPI_Irecv and MPI_Test, so that nothing here ever waits
// for another process; the library handles time limits and the order of sums.
#include <mpi.h>

#include <climits>
#include <cstdio>
#include <cstring>
#include <new>

#include "plimsoll/distributed/engine.h"

namespace {

MPI_Comm ours = MPI_COMM_NULL;
bool began_here = false;  // Otherwise the program itself started MPI, and ends it.
bool ended = false;

int fail(int code, PlimsollEngineError* error) {
  char text[MPI_MAX_ERROR_STRING + 1] = {};
  int length = 0;
  if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) std::snprintf(text, sizeof(text), "MPI error %d", code);
  std::snprintf(error->text, sizeof(error->text), "%s", text);
#ifdef MPI_ERR_PROC_FAILED
  int kind = 0;
  MPI_Error_class(code, &kind);
  error->is_gone = kind == MPI_ERR_PROC_FAILED;
#endif
  return 1;
}
int say(const char* text, PlimsollEngineError* error) {
  std::snprintf(error->text, sizeof(error->text), "%s", text);
  return 1;
}

int begin_mpi(PlimsollEngineError* error) {
  int begun = 0, over = 0;
  MPI_Initialized(&begun);
  MPI_Finalized(&over);
  if (over || ended) return say("MPI has ended in this process; keep one job for all of it", error);
  if (!begun) {
    int given = 0;
    if (const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &given); code != MPI_SUCCESS)
      return fail(code, error);
    began_here = true;
    if (given < MPI_THREAD_SERIALIZED) return say("this MPI does not allow calls from several threads in turn", error);
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (const int code = MPI_Comm_dup(MPI_COMM_WORLD, &ours); code != MPI_SUCCESS) return fail(code, error);
  MPI_Comm_set_errhandler(ours, MPI_ERRORS_RETURN);
  return 0;
}

int start(int* rank, int* size, PlimsollEngineError* error) {
  if (ours == MPI_COMM_NULL)
    if (const int failed = begin_mpi(error); failed != 0) return failed;
  MPI_Comm_rank(ours, rank);
  MPI_Comm_size(ours, size);
  return 0;
}

int host(char* name, size_t size) {
  char text[MPI_MAX_PROCESSOR_NAME + 1] = {};
  int length = 0;
  if (MPI_Get_processor_name(text, &length) != MPI_SUCCESS) return 1;
  std::snprintf(name, size, "%s", text);
  return 0;
}

// Begins one and keeps its request on the heap.
template <class F>
int begin(size_t size, void** transfer, PlimsollEngineError* error, F&& f) {
  if (size > INT_MAX) return say("a message of more than 2 GiB", error);
  auto* const request = new (std::nothrow) MPI_Request(MPI_REQUEST_NULL);
  if (!request) return say("there is no memory for a request", error);
  if (const int code = f(static_cast<int>(size), request); code != MPI_SUCCESS) {
    delete request;
    return fail(code, error);
  }
  *transfer = request;
  return 0;
}

int send(int to, int tag, const void* bytes, size_t size, void** transfer, PlimsollEngineError* error) {
  return begin(size, transfer, error, [&](int count, MPI_Request* request) {
    return MPI_Isend(bytes, count, MPI_BYTE, to, tag, ours, request);
  });
}

int receive(int from, int tag, void* bytes, size_t size, void** transfer, PlimsollEngineError* error) {
  return begin(size, transfer, error, [&](int count, MPI_Request* request) {
    return MPI_Irecv(bytes, count, MPI_BYTE, from, tag, ours, request);
  });
}

int test(void* transfer, int* is_done, PlimsollEngineError* error) {
  auto* const request = static_cast<MPI_Request*>(transfer);
  MPI_Status status;
  if (const int code = MPI_Test(request, is_done, &status); code != MPI_SUCCESS) return fail(code, error);
  if (*is_done) delete request;
  return 0;
}

void abort_job(int exit_code) {
  if (ours == MPI_COMM_NULL || ended) return;
  MPI_Abort(MPI_COMM_WORLD, exit_code);
}

void finish() {
  if (ours == MPI_COMM_NULL || ended) return;
  ended = true;
  MPI_Comm_free(&ours);
  if (began_here) MPI_Finalize();
}

constexpr PlimsollEngine kEngine = {
    PLIMSOLL_ENGINE_VERSION, "mpi", start, host, send, receive, test, abort_job, finish};

}  // namespace

extern "C" __attribute__((visibility("default"))) const PlimsollEngine* plimsoll_engine(int version) {
  return version == PLIMSOLL_ENGINE_VERSION ? &kEngine : nullptr;
}
