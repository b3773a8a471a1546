/* Calls functions of a library, as requests on the standard input ask. It runs in an emulator of
 * another processor than that of the asking process, which has other memory: a request brings the
 * memory that the function reads and writes, and the answer returns it. See emulated_arm.py. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define ARGUMENTS 16
#define LINE 64 /* addresses in the memory are multiples of this, where they were in the asking process */

typedef struct {
  char name[32];
  int64_t arguments[ARGUMENTS]; /* integers, and addresses as offsets in the memory */
  int64_t addresses; /* bit i: argument i is an address */
  int64_t bytes, pointers; /* the memory; how many addresses stand in it, as offsets */
} Request;

int main(int count, char **arguments) {
  void *library = count > 1 ? dlopen(arguments[1], RTLD_NOW) : NULL;
  if (!library) {
    fprintf(stderr, "%s\n", count > 1 ? dlerror() : "no library is named");
    return 1;
  }
  Request r;
  while (fread(&r, sizeof r, 1, stdin)) {
    /* It is never freed, because a function may keep addresses, such as that of a model. */
    char *memory = aligned_alloc(LINE, (r.bytes + LINE) / LINE * LINE);
    int64_t *places = malloc((r.pointers + 1) * sizeof *places);
    if (!memory || !places) return 2;
    if (fread(memory, 1, r.bytes, stdin) != (size_t)r.bytes) return 3;
    if (fread(places, sizeof *places, r.pointers, stdin) != (size_t)r.pointers) return 3;
    for (int64_t i = 0; i < r.pointers; i++)
      *(int64_t *)(memory + places[i]) += (int64_t)(intptr_t)memory;
    free(places);
    int64_t *a = r.arguments;
    for (int i = 0; i < ARGUMENTS; i++)
      if (r.addresses >> i & 1) a[i] += (int64_t)(intptr_t)memory;
    int64_t (*function)() = dlsym(library, r.name);
    if (!function) return 4;
    int64_t result = function(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10],
                              a[11], a[12], a[13], a[14], a[15]);
    fwrite(&result, sizeof result, 1, stdout);
    fwrite(memory, 1, r.bytes, stdout);
    fflush(stdout);
  }
  return 0;
}
