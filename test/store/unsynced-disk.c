// Preloaded into processes: simulates a disk below the page cache, in the directory DISK. For each file that ends in .db
// or -wal, it has an image with the synced contents, and a map with a byte per page: 1 if the page was written after the
// last sync. Like the page cache, both survive the kill of a process; after a power cut, only the images remain.
//
// The file `fault` beside them contains a fault and the ending of the files whose syncs it affects: `fail` returns EIO
// and, like the kernel, marks the pages as clean; `hang` never returns, and creates the file `hung`. CUT_AT is the number
// of the first operation that is not executed: the process ends there.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#define PAGE 4096
#define REAL(type, name, ...) ((type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name))

typedef ssize_t (*writer)(int, const void *, size_t, off_t);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int ends_in(const char *text, const char *end) {
  size_t a = strlen(text), b = strlen(end);
  return a >= b && strcmp(text + a - b, end) == 0;
}

static int is_ours(const char *path) {
  return getenv("DISK") && (ends_in(path, ".db") || ends_in(path, "-wal"));
}

static int find_path(int fd, char *path) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t size = readlink(link, path, PATH_MAX - 1);
  path[size < 0 ? 0 : size] = 0;
  return is_ours(path);
}

static int open_beside(const char *path, const char *suffix) {
  char name[PATH_MAX * 2];
  snprintf(name, sizeof name, "%s/%s%s", getenv("DISK"), strrchr(path, '/') + 1, suffix);
  return open(name, O_RDWR | O_CREAT, 0600);
}

static ssize_t put(int fd, const void *bytes, size_t size, off_t at) {
  return REAL(ssize_t, "pwrite64", int, const void *, size_t, off_t)(fd, bytes, size, at);
}

/** Counts an operation; ends the process at number CUT_AT. */
static void step(void) {
  char name[PATH_MAX], text[32];
  snprintf(name, sizeof name, "%s/steps", getenv("DISK"));
  int file = open(name, O_RDWR | O_CREAT, 0600);
  ssize_t size = pread(file, text, sizeof text - 1, 0);
  text[size < 0 ? 0 : size] = 0;
  int number = atoi(text) + 1;
  const char *cut = getenv("CUT_AT");
  if (cut && number >= atoi(cut)) _exit(9);
  size = snprintf(text, sizeof text, "%d", number);
  put(file, text, size, 0);
  close(file);
}

static int find_fault(const char *path, const char *kind) {
  char name[PATH_MAX], text[64] = "";
  snprintf(name, sizeof name, "%s/fault", getenv("DISK"));
  int file = open(name, O_RDONLY);
  if (file < 0) return 0;
  ssize_t size = read(file, text, sizeof text - 1);
  close(file);
  text[size < 0 ? 0 : size] = 0;
  size_t length = strlen(kind);
  return strncmp(text, kind, length) == 0 && ends_in(path, text + length + 1);
}

/** Marks all pages as clean; with `keep`, copies them into the image first. */
static void clean(int fd, const char *path, int keep) {
  char page[PAGE], dirty;
  int map = open_beside(path, ".dirty"), image = open_beside(path, "");
  for (off_t n = 0; pread(map, &dirty, 1, n) == 1; n++) {
    if (!dirty) continue;
    ssize_t size = keep ? pread(fd, page, PAGE, n * PAGE) : 0;
    if (size > 0) put(image, page, size, n * PAGE);
    dirty = 0;
    put(map, &dirty, 1, n);
  }
  close(map);
  close(image);
}

static ssize_t write_page(const char *name, int fd, const void *bytes, size_t size, off_t at) {
  char path[PATH_MAX];
  writer real = (writer)dlsym(RTLD_NEXT, name);
  if (!find_path(fd, path)) return real(fd, bytes, size, at);
  pthread_mutex_lock(&lock);
  step();
  ssize_t done = real(fd, bytes, size, at);
  int map = open_beside(path, ".dirty");
  for (off_t n = at / PAGE; done > 0 && n <= (at + done - 1) / PAGE; n++) put(map, "\1", 1, n);
  close(map);
  pthread_mutex_unlock(&lock);
  return done;
}

static int sync_file(const char *name, int fd) {
  char path[PATH_MAX];
  int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
  if (!find_path(fd, path)) return real(fd);
  pthread_mutex_lock(&lock);
  step();
  if (find_fault(path, "hang")) {
    close(open_beside("/hung", ""));
    for (;;) pause();
  }
  int fails = find_fault(path, "fail");
  clean(fd, path, !fails);
  pthread_mutex_unlock(&lock);
  if (!fails) return real(fd);
  errno = EIO;
  return -1;
}

static int cut_file(const char *name, int fd, off_t size) {
  char path[PATH_MAX];
  int (*real)(int, off_t) = (int (*)(int, off_t))dlsym(RTLD_NEXT, name);
  if (find_path(fd, path)) {
    step();
    int image = open_beside(path, ""), map = open_beside(path, ".dirty");
    struct stat stats;
    if (fstat(image, &stats) == 0 && stats.st_size > size) real(image, size);
    real(map, (size + PAGE - 1) / PAGE);
    close(image);
    close(map);
  }
  return real(fd, size);
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t at) { return write_page("pwrite", fd, bytes, size, at); }
ssize_t pwrite64(int fd, const void *bytes, size_t size, off_t at) { return write_page("pwrite64", fd, bytes, size, at); }
int fsync(int fd) { return sync_file("fsync", fd); }
int fdatasync(int fd) { return sync_file("fdatasync", fd); }
int ftruncate(int fd, off_t size) { return cut_file("ftruncate", fd, size); }
int ftruncate64(int fd, off_t size) { return cut_file("ftruncate64", fd, size); }

int unlink(const char *path) {
  int (*real)(const char *) = REAL(int, "unlink", const char *);
  if (is_ours(path)) {
    char name[PATH_MAX * 2];
    step();
    for (int n = 0; n < 2; n++) {
      snprintf(name, sizeof name, "%s/%s%s", getenv("DISK"), strrchr(path, '/') + 1, n ? ".dirty" : "");
      real(name);
    }
  }
  return real(path);
}
