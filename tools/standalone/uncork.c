/* `uncork` of the standalone folder: starts the Python beside it, isolated from the Pythons of the machine. */
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int count, char **words) {
    char self[PATH_MAX], python[PATH_MAX + sizeof "/python3"];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length < 0) {
        fprintf(stderr, "uncork: cannot find its own folder: /proc/self/exe: %s; mount /proc\n", strerror(errno));
        return 2;
    }
    self[length] = '\0';
    snprintf(python, sizeof python, "%s/python3", dirname(self));
    char **all = calloc((size_t)count + 4, sizeof *all);
    if (all == NULL) {
        fprintf(stderr, "uncork: no memory for %d words\n", count);
        return 2;
    }
    all[0] = python;
    all[1] = "-I"; /* neither PYTHONPATH nor the working directory nor the user's packages */
    all[2] = "-m";
    all[3] = "uncork";
    for (int at = 1; at < count; at++) all[at + 3] = words[at];
    execv(python, all);
    fprintf(stderr, "uncork: cannot start %s: %s; unpack the archive again\n", python, strerror(errno));
    return 2;
}
