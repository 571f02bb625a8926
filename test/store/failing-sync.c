// Preloaded into a process: while the file named by FAULT_FLAG is there, fsync and fdatasync of a file whose name ends
// in what that file says fail with EIO, and nothing is synced.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fails(int fd) {
  const char *flag = getenv("FAULT_FLAG");
  char suffix[64], link[64], path[4096];
  if (!flag) return 0;
  int file = open(flag, O_RDONLY);
  if (file < 0) return 0;
  ssize_t length = read(file, suffix, sizeof suffix);
  close(file);
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t size = readlink(link, path, sizeof path);
  return length > 0 && size >= length && memcmp(path + size - length, suffix, length) == 0;
}

static int sync_or_fail(const char *name, int fd) {
  if (fails(fd)) {
    errno = EIO;
    return -1;
  }
  return ((int (*)(int))dlsym(RTLD_NEXT, name))(fd);
}

int fsync(int fd) { return sync_or_fail("fsync", fd); }
int fdatasync(int fd) { return sync_or_fail("fdatasync", fd); }
